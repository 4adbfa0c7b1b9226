"""What travels between a client and the orchestrator. Imports nothing but msgspec."""
