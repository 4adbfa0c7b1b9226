"""Fences: what is done under a lease is refused once the lease was given to somebody else.

A holder can be stopped for longer than its lease lasts and come back without knowing it. So it is
not asked whether it believes to hold the lease: every write that it sends carries its token, and
the token is compared inside the transaction of that write.
"""

from __future__ import annotations

import re

from recollect.orchestrator.calls import Call, Fence
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.errors import InvalidArgument, LeaseLost

TOKEN = "SELECT token FROM leases WHERE name = ?"

_FENCE = re.compile(r"([a-z0-9][a-z0-9_.:-]{0,63})/([0-9]{1,18})")


def read_fence(text: str) -> Fence:
    """The fence that an envelope carries."""
    parts = _FENCE.fullmatch(text)
    if parts is None:
        raise InvalidArgument(
            "fence is not the name of a lease and its token, such as `scheduler/12`.",
            field="fence",
        )
    return Fence(parts[1], int(parts[2]))


def check_fence(call: Call, session: Session) -> None:
    """Refuse a call whose lease has another token by now."""
    fence = call.fence
    if fence is None:
        return
    found = session.execute(TOKEN, (fence.name,))
    if not found or found[0][0] != fence.token:
        raise lost(fence.name, fence.token)


def lost(name: str, token: int) -> LeaseLost:
    """Why the holder of a token does nothing more under its lease."""
    return LeaseLost(
        f"The lease {name!r} is not held by the token {token} any more: nothing was written. "
        "Acquire it anew.",
        lease=name,
        token=token,
    )
