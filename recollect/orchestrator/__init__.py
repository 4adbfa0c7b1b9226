"""The Memory Orchestrator: the one process that owns the data."""
