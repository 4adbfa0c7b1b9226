"""Who may come in: a name, what it is known by, grants and bounds."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.access.grants import EVERYTHING, Grants


class Identity(msgspec.Struct, frozen=True):
    """Somebody who asks, as known when they asked."""

    name: str
    grants: Grants
    credential: str | None = None
    """What it showed of itself, see `credentials`; None where nothing was asked for."""
    requests_per_s: float | None = None
    memories_max: int | None = None


LOCAL = Identity("local", EVERYTHING)
"""Whoever reaches an orchestrator that asks for no keys: it is bound to this machine alone."""
OWN_NAMES = frozenset({LOCAL.name, "orchestrator"})
"""By these the audit means the orchestrator itself or its machine, so nobody else has them."""
