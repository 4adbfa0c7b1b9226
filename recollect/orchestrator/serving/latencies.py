"""How long each operation took, counted in powers of two.

A duration's place is the length of its microseconds in bits, so that counting one is two additions
into a list that is there already. The hottest path of the orchestrator pays for this.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.protocol.records import OperationFigures

SHORTEST_BITS = 4
"""What took less than 16 microseconds is not told apart."""
LONGEST_BITS = 25
"""Nor is what took more than 33 seconds."""
BOUNDS_S = [(1 << bits) / 1_000_000 for bits in range(SHORTEST_BITS, LONGEST_BITS + 1)]
# A meter has a place for every length that a duration can have, then its sum and its failures.
SUM = 64
FAILED = 65

Meter = list[int]
"""Counts of one operation. Touched by the event loop's thread alone."""


def new_meter() -> Meter:
    return [0] * (FAILED + 1)


def meters_of(operations: Iterable[str]) -> dict[str, Meter]:
    """An empty meter for each operation."""
    return {name: new_meter() for name in operations}


def count(meter: Meter, took_us: int) -> None:
    """Count an answer; the dispatcher does the same by itself where it has to be quick."""
    if took_us > 0:
        meter[SUM] += took_us
    else:
        took_us = 0  # the clock was set back meanwhile
    meter[took_us.bit_length()] += 1


def answered(meter: Meter) -> int:
    """How many answers there were, failures included."""
    return sum(meter[:SUM])


def figures(meter: Meter) -> OperationFigures:
    """The counts of one operation as they are told."""
    shortest = sum(meter[: SHORTEST_BITS + 1])
    between = meter[SHORTEST_BITS + 1 : LONGEST_BITS + 1]
    longest = sum(meter[LONGEST_BITS + 1 : SUM])
    return {
        "count": answered(meter),
        "failed": meter[FAILED],
        "sum_s": meter[SUM] / 1_000_000,
        "buckets": [shortest, *between, longest],
    }
