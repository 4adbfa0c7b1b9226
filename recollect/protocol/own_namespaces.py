"""Namespaces that Recollect uses for itself."""

HEALTH_NAMESPACE = "temp:recollect-health"
"""Where the health manager has its canaries, and tells of changes."""
