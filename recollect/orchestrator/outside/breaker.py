"""A circuit breaker for a service that the orchestrator calls, from several threads maybe.

    closed ── fail_max failures in a row ──► open ── reset_s ──► half-open, one probe
      ▲                                       ▲                       │
      └────────────── it succeeds ────────────┴────── it fails ───────┘

pybreaker runs the guarded call under its lock, which would let one thread call at a time. Here a
call asks first and tells afterwards, and the lock is held only while the state changes. The clock
is monotonic and passed in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Breaker:
    """Says whether a call may be tried. Safe from any thread."""

    def __init__(self, *, fail_max: int, reset_s: float, clock: Callable[[], float]) -> None:
        self._fail_max = fail_max
        self._reset_s = reset_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_count = 0
        # None while closed; otherwise the moment from which one probe may go.
        self._retry_at_s: float | None = None

    def wait_s(self) -> float:
        """Zero if a call may be tried now, which in an open circuit makes it the probe.

        The probe has the whole of `reset_s` to itself: a thread that dies with it delays the next
        one and does not prevent it.
        """
        with self._lock:
            if self._retry_at_s is None:
                return 0.0
            now_s = self._clock()
            if now_s < self._retry_at_s:
                return self._retry_at_s - now_s
            self._retry_at_s = now_s + self._reset_s
            return 0.0

    def succeeded(self) -> None:
        """The service answered, whatever it said."""
        with self._lock:
            self._failures = 0
            self._retry_at_s = None

    def failed(self) -> None:
        """The service did not answer, or could not serve."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._fail_max:
                self._opened_count += self._retry_at_s is None
                self._retry_at_s = self._clock() + self._reset_s

    def is_open(self) -> bool:
        """Whether calls are refused, the probe apart."""
        with self._lock:
            return self._retry_at_s is not None

    def describe(self) -> dict[str, Any]:
        with self._lock:
            left_s = 0.0 if self._retry_at_s is None else self._retry_at_s - self._clock()
            return {
                "state": "closed" if self._retry_at_s is None else "open",
                "failures": self._failures,
                "opened_count": self._opened_count,
                "retry_in_s": max(0.0, left_s),
            }
