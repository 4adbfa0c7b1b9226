"""How far a pattern is trusted: a Beta posterior over what went well and what did not.

The prior is Beta(1, 1): before any evidence, all is equally likely. Each execution and each
feedback counts as one. The mean is the confidence that callers see. What ranks is lower the less is
known: the mean less one standard deviation, so that two of two do not beat forty of forty-two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")

PRIOR = 1.0
LIKENESS_MARGIN = 0.2


class Posterior(msgspec.Struct, frozen=True):
    """What the evidence says."""

    successes: float
    failures: float

    @property
    def confidence(self) -> float:
        """The mean."""
        a, b = self.successes + PRIOR, self.failures + PRIOR
        return a / (a + b)

    @property
    def standing(self) -> float:
        """The mean less one standard deviation, from 0 to 1."""
        a, b = self.successes + PRIOR, self.failures + PRIOR
        deviation = math.sqrt(a * b / (a + b + 1)) / (a + b)
        return max(0.0, a / (a + b) - deviation)


def best_first(weighed: Sequence[tuple[T, float, float]]) -> list[T]:
    """Patterns by how well they suit a task, each given with its likeness and its standing.

    Likeness comes first: what is much less like than the most like is for another kind of task,
    however well proven, and comes after. Among those about as like, likeness times standing ranks.
    """
    if not weighed:
        return []
    enough = max(likeness for _, likeness, _ in weighed) - LIKENESS_MARGIN

    def rank(item: tuple[T, float, float]) -> tuple[bool, float, float]:
        _, likeness, standing = item
        return likeness < enough, -max(likeness, 0.0) * standing, -likeness

    return [pattern for pattern, *_ in sorted(weighed, key=rank)]
