"""Services outside that the orchestrator asks, with care."""
