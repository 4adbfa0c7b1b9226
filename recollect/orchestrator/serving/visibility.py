"""Waiting until a change is visible here that another orchestrator may have made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.orchestrator.storage.interface import Storage
from recollect.protocol.errors import NotYetVisible

POLL_S_MIN = 0.002
POLL_S_MAX = 0.05


async def visible(storage: Storage, min_seq: int, given_up: Callable[[], bool]) -> None:
    """Wait until reads see a change; an error if they do not before the wait is given up."""
    pause_s = POLL_S_MIN
    while (seq := await storage.reached_seq()) < min_seq:
        if given_up():
            raise NotYetVisible(
                f"Change {min_seq} is not visible here; the last one is {seq}. Is min_seq from "
                "this store?",
                min_seq=min_seq,
                seq=seq,
            )
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, POLL_S_MAX)
