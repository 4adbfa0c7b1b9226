"""The gateway: REST, MCP and gRPC for whoever does not speak ZeroMQ, from the declared operations.

It is a client of the orchestrator like any other and keeps nothing. Whose request it carries, the
orchestrator is told with each of them by the bearer key of the caller, and checks it there.
"""
