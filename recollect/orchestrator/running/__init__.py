"""The orchestrator as a process: what it is made of, its start and its end."""
