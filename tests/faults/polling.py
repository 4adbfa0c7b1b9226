"""Bounded waiting for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.002


def wait_for(condition: Callable[[], bool], *, within_s: float, what: str) -> None:
    """Return as soon as the condition holds; fail if it does not in time."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {within_s} s: {what}"
        time.sleep(STEP_S)
