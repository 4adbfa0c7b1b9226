"""How far a pattern is trusted: a Beta posterior over what went well and what did not.

The prior is Beta(1, 1): before any evidence, all is equally likely. Each execution and each
feedback counts as one. The mean is the confidence that callers see. What ranks is lower the less is
known: the mean less one standard deviation, so that two of two do not beat forty of forty-two.
"""

from __future__ import annotations

import math

import msgspec

PRIOR = 1.0


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


def fit(similarity: float, standing: float) -> float:
    """How well a pattern suits a task: likeness, of which trust can take away at most half.

    Likeness leads: what is well proven for another kind of task is still for another kind.
    """
    return similarity * (1 + standing) / 2
