"""Connections that were turned away, on their way into the audit log.

A client that is turned away soon comes again by itself, so that a line for each attempt would bury
all else. The first attempt of a key and address is entered at once; those that follow within a
minute are counted, and one line tells how many they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import Clock

OPERATION = "connect"
STRANGER = "(unknown)"
"""Stands for an identity in the audit where there is none; no identity can be called so."""
WINDOW_S = 60.0
SWEEP_S = 5.0
ENTRIES_MAX = 1_000

Who = tuple[str, str]


class Window:
    """What is known of one key at one address, since its last line."""

    __slots__ = ("count", "identity", "opened_s", "reason")

    def __init__(self, identity: str, reason: str, opened_s: float) -> None:
        self.identity = identity
        self.reason = reason
        self.opened_s = opened_s
        self.count = 0


class Attempts:
    """Enters denied connections. Lives on the event loop; the clock is a monotonic one."""

    def __init__(self, refusals: RefusalLog, clock: Clock, monotonic: Callable[[], float]) -> None:
        self._refusals = refusals
        self._clock = clock
        self._monotonic = monotonic
        self._windows: dict[Who, Window] = {}
        # Attempts of keys for which there was no room.
        self._others = 0

    def denied(self, key: str, address: str, reason: str, name: str | None = None) -> None:
        """Note one attempt; the key, the address and the name are empty where they are unknown."""
        now_s = self._monotonic()
        who = (key, address)
        window = self._windows.get(who)
        if window is not None and now_s - window.opened_s < WINDOW_S:
            window.count += 1
            return
        if window is not None:
            self._tell(who, window)
        elif len(self._windows) >= ENTRIES_MAX:
            self._others += 1
            return
        identity = name or STRANGER
        self._windows[who] = Window(identity, reason, now_s)
        self._enter(identity, key, f"{reason}{_from(address)}")

    def sweep(self) -> None:
        """Tell of the attempts whose minute is over."""
        now_s = self._monotonic()
        for who, window in list(self._windows.items()):
            if now_s - window.opened_s < WINDOW_S:
                continue
            if window.count:
                self._tell(who, window)
                window.count, window.opened_s = 0, now_s
            else:
                del self._windows[who]
        self._tell_others()

    def flush(self) -> None:
        """Tell of all that was counted, before the end."""
        for who, window in self._windows.items():
            self._tell(who, window)
        self._windows.clear()
        self._tell_others()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep()

    def _tell(self, who: Who, window: Window) -> None:
        if window.count:
            key, address = who
            detail = f"{window.reason}{_from(address)}: {window.count:,} more attempts"
            self._enter(window.identity, key, detail)

    def _tell_others(self) -> None:
        if self._others:
            self._enter(STRANGER, "", f"{self._others:,} attempts of other keys")
            self._others = 0

    def _enter(self, identity: str, key: str, detail: str) -> None:
        now_us = self._clock.now_us()
        self._refusals.note(
            Call(
                operation=OPERATION,
                now_us=now_us,
                deadline_us=now_us,
                identity=identity,
                refusals=[Refusal(key, None, detail)],
            )
        )


def _from(address: str) -> str:
    return f", from {address}" if address else ""
