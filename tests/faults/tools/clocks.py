"""Clocks that are moved by hand: of a machine, and of a client."""

from __future__ import annotations

import time


class Machine:
    """Time as it passes, which can be made to pass more quickly, and a wall clock that can be set
    to show something else."""

    def __init__(self) -> None:
        self._passed_ns = 0
        self._set_ns = 0

    def steady_ns(self) -> int:
        return time.monotonic_ns() + self._passed_ns

    def wall_ns(self) -> int:
        return 1_800_000_000_000_000_000 + self.steady_ns() + self._set_ns

    def pass_time(self, seconds: float) -> None:
        self._passed_ns += int(seconds * 1e9)

    def set_wall(self, ahead_s: float) -> None:
        self._set_ns = int(ahead_s * 1e9)


class Watch:
    """The monotonic clock, which can be put forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def forward(self, seconds: float) -> None:
        self._ahead_s += seconds
