"""What the orchestrator can do, one service a domain."""
