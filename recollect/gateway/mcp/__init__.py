"""MCP: the declared operations as tools, memories and sessions as resources, context as a prompt.

Over stdio for a client on this machine (`recollect mcp`), over streamable HTTP in the gateway. Both
are one server; what differs is who speaks, and how they are known.
"""
