"""The Redis beside the orchestrator: one of its own, somebody's by its address, or none."""
