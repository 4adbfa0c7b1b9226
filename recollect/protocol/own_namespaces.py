"""Namespaces that Recollect uses for itself."""

HEALTH_NAMESPACE = "temp:recollect-health"
"""Below it the health manager has its canaries; in it, it tells of changes."""


def is_own(namespace: str) -> bool:
    """Whether it is one of them, or below one."""
    return namespace == HEALTH_NAMESPACE or namespace.startswith(f"{HEALTH_NAMESPACE}:")
