"""The orchestrator's clock as a client knows it.

Deadlines travel as moments of the orchestrator's clock. Every reply says what that clock shows; the
client keeps its distance from its own monotonic clock, so that a jump of this machine's wall clock
moves no deadline. Before the first reply both wall clocks are taken to agree.
"""

from __future__ import annotations

from collections.abc import Callable


class ServerClock:
    """States deadlines by the orchestrator's clock. Any thread may use it: it keeps one number."""

    def __init__(self, monotonic: Callable[[], float], wall: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._offset_ms = (wall() - monotonic()) * 1000.0

    def deadline_ms(self, deadline_s: float) -> int:
        """A moment of the monotonic clock as Unix milliseconds of the orchestrator."""
        return int(deadline_s * 1000.0 + self._offset_ms)

    def now_ms(self) -> int:
        """What the orchestrator's clock shows now."""
        return int(self._monotonic() * 1000.0 + self._offset_ms)

    def learn(self, now_ms: int, received_s: float) -> None:
        """Take what a reply says: a little before it was received, so deadlines come out early."""
        self._offset_ms = now_ms - received_s * 1000.0
