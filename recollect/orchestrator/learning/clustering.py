"""Which executions are alike: groups of vectors around their means.

Each joins the group whose mean it is nearest to, if it is near enough, and else begins one. Taken
in the order of their age, so that the same executions make the same groups, and later ones join
those that are there. Those that stay alone are taken once more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors


def groups_of(vectors: Vectors, nearness: float) -> list[list[int]]:
    """Places of unit vectors that belong together, each in one group."""
    groups = _Groups(vectors, nearness)
    for place in range(len(vectors)):
        groups.join(place)
    # Who came before those that it belongs to looks once more.
    for place in groups.take_alone():
        groups.join(place)
    return sorted(sorted(group) for group in groups.members if group)


class _Groups:
    """Groups as they grow; one that was emptied stays empty."""

    def __init__(self, vectors: Vectors, nearness: float) -> None:
        self._vectors = vectors
        self._nearness = nearness
        # Each may begin a group, and once more after it was alone.
        self._sums = np.zeros((2 * len(vectors), vectors.shape[1]), dtype=np.float32)
        self._lengths = np.ones(2 * len(vectors), dtype=np.float32)
        self.members: list[list[int]] = []

    def join(self, place: int) -> None:
        vector = self._vectors[place]
        count = at = len(self.members)
        if count:
            likeness = (self._sums[:count] @ vector) / self._lengths[:count]
            best = int(np.argmax(likeness))
            if likeness[best] >= self._nearness:
                at = best
        if at == count:
            self.members.append([])
        self.members[at].append(place)
        self._sums[at] += vector
        # A text without a word has no direction; it is near nothing.
        self._lengths[at] = float(np.linalg.norm(self._sums[at])) or 1.0

    def take_alone(self) -> list[int]:
        """Those that are in a group of their own, no longer in it."""
        alone = [at for at, group in enumerate(self.members) if len(group) == 1]
        self._sums[alone] = 0.0
        return [self.members[at].pop() for at in alone]


def mean_of(vectors: Sequence[Vectors]) -> Vectors:
    """The direction in which some vectors point together."""
    total = np.sum(np.stack(vectors), axis=0)
    length = float(np.linalg.norm(total)) or 1.0
    mean: Vectors = (total / length).astype(np.float32)
    return mean


def most_typical(vectors: Sequence[Vectors]) -> int:
    """The place of the one that is nearest to all; of equals the first."""
    # Rounded, so that those of equal text are equal however they were computed.
    return int(np.argmax(np.round(np.stack(vectors) @ mean_of(vectors), 4)))
