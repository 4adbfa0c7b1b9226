"""Rounds of work in turns, with and without what may harm them, compared on a noisy machine."""

from __future__ import annotations

from tests.faults import counts

ROUNDS_MIN = 2
ROUNDS_MAX = 25
SLOWER_MAX = 1.2 if counts.ALONE else 1.5
"""The promise, for which a machine must be quiet; beside other tests only what is plain counts."""


def alike(without: list[float], beside: list[float]) -> bool:
    """Whether the rounds beside it took no longer: the best of them, or half of the neighbours.

    Whoever else works on the machine disturbs both alike, so noise passes and harm stays.
    """
    good = sum(b <= SLOWER_MAX * a for a, b in zip(without, beside, strict=True))
    return min(beside) <= SLOWER_MAX * min(without) or 2 * good >= len(without)
