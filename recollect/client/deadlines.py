"""When the time of requests is up: one timer of the event loop for all of them.

A timer for each would cost more than the rest of its bookkeeping, and nearly all of them are
cancelled. Calls mostly have the same time to wait, so the earliest is seldom a new one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

# Loops count in whole milliseconds, and may ring so much too early.
EARLY_S = 0.001


class Deadlines:
    """Calls `expire` with the id of each request whose time is up. Lives on the event loop."""

    def __init__(self, clock: Callable[[], float], expire: Callable[[int], None]) -> None:
        self._clock = clock
        self._expire = expire
        self._due_s: dict[int, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at_s = math.inf

    def add(self, request_id: int, due_s: float) -> None:
        """Watch over a request until it is dropped."""
        self._due_s[request_id] = due_s
        if due_s < self._rings_at_s:
            self._set(due_s)

    def drop(self, request_id: int) -> None:
        """Watch over a request no more. The timer stays: mostly others wait for it by then."""
        self._due_s.pop(request_id, None)

    def close(self) -> None:
        """Watch over nothing any more."""
        self._due_s.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at_s = None, math.inf

    def _set(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at_s = at_s
        left_s = max(0.0, at_s - self._clock())
        self._timer = asyncio.get_running_loop().call_later(left_s, self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at_s = None, math.inf
        now_s = self._clock() + EARLY_S
        for request_id in [one for one, due_s in self._due_s.items() if due_s <= now_s]:
            del self._due_s[request_id]
            self._expire(request_id)
        if self._due_s:
            self._set(min(self._due_s.values()))
