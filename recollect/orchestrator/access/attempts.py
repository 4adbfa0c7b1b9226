"""Those who were turned away, on their way into the audit log.

A client that is turned away soon comes again by itself, so that a line for each attempt would bury
all else. The first attempt of a kind is entered at once: by the same key, from the same address,
at the same operation and for the same reason. Those that follow within a minute are counted, and
one line tells how many they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import Clock

CONNECT = "connect"
"""Stands for an operation in the audit where somebody did not come so far as to ask for one."""
UNREADABLE = "unreadable"
"""Stands for an operation that is none, or cannot be read."""
STRANGER = "(unknown)"
"""Stands for an identity in the audit where there is none; no identity can be called so."""
WINDOW_S = 60.0
SWEEP_S = 5.0
ENTRIES_MAX = 1_000


class Kind(NamedTuple):
    """Attempts that share a line."""

    key: str
    address: str
    operation: str
    reason: str
    identity: str


class Window:
    """What came of one kind since its last line."""

    __slots__ = ("count", "opened_s")

    def __init__(self, opened_s: float) -> None:
        self.opened_s = opened_s
        self.count = 0


class Attempts:
    """Enters denied attempts. Lives on the event loop; the second clock is a monotonic one."""

    def __init__(self, refusals: RefusalLog, clock: Clock, monotonic: Callable[[], float]) -> None:
        self._refusals = refusals
        self._clock = clock
        self._monotonic = monotonic
        self._windows: dict[Kind, Window] = {}
        # Attempts of kinds for which there was no room.
        self._others = 0

    def denied(
        self,
        key: str,
        address: str,
        reason: str,
        name: str | None = None,
        operation: str = CONNECT,
    ) -> None:
        """Note one attempt; the key, the address and the name are empty where they are unknown.

        Of a bearer key it is the id alone, as `credentials.shown` gives it.
        """
        now_s = self._monotonic()
        kind = Kind(key, address, operation, reason, name or STRANGER)
        window = self._windows.get(kind)
        if window is not None and now_s - window.opened_s < WINDOW_S:
            window.count += 1
            return
        if window is not None:
            self._tell(kind, window)
        elif len(self._windows) >= ENTRIES_MAX:
            self._others += 1
            return
        self._windows[kind] = Window(now_s)
        self._enter(kind, _origin(kind))

    def sweep(self) -> None:
        """Tell of the attempts whose minute is over."""
        now_s = self._monotonic()
        for kind, window in list(self._windows.items()):
            if now_s - window.opened_s < WINDOW_S:
                continue
            if window.count:
                self._tell(kind, window)
                window.count, window.opened_s = 0, now_s
            else:
                del self._windows[kind]
        self._tell_others()

    def flush(self) -> None:
        """Tell of all that was counted, before the end."""
        for kind, window in self._windows.items():
            self._tell(kind, window)
        self._windows.clear()
        self._tell_others()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep()

    def _tell(self, kind: Kind, window: Window) -> None:
        if window.count:
            more = "1 more attempt" if window.count == 1 else f"{window.count:,} more attempts"
            self._enter(kind, f"{_origin(kind)}: {more}")

    def _tell_others(self) -> None:
        if self._others:
            kind = Kind("", "", CONNECT, "", STRANGER)
            self._enter(kind, f"{self._others:,} attempts of other keys")
            self._others = 0

    def _enter(self, kind: Kind, detail: str) -> None:
        now_us = self._clock.now_us()
        self._refusals.note(
            Call(
                operation=kind.operation,
                now_us=now_us,
                deadline_us=now_us,
                identity=kind.identity,
                refusals=[Refusal(kind.key, None, detail)],
            )
        )


def _origin(kind: Kind) -> str:
    return f"{kind.reason}, from {kind.address}" if kind.address else kind.reason
