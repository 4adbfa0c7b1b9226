"""Identities for tests, by what they may do."""

from __future__ import annotations

from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.protocol.operation import Access


def somebody(
    name: str,
    *,
    read: tuple[str, ...] = (),
    write: tuple[str, ...] = (),
    admin: tuple[str, ...] = (),
) -> Identity:
    """An identity with grants on some patterns."""
    levels: dict[Access, tuple[str, ...]] = {"read": read, "write": write, "admin": admin}
    return Identity(
        name, Grants(tuple(Grant(p, level) for level, found in levels.items() for p in found))
    )
