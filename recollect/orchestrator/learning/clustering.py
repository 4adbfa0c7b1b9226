"""Which executions are alike: groups of vectors around their means.

Each joins the group whose mean it is nearest to, if it is near enough, and else begins one. Taken
in the order of their age, so that the same executions make the same groups, and later ones join
those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors


def groups_of(vectors: Vectors, nearness: float) -> list[list[int]]:
    """Places of unit vectors that belong together, each in one group."""
    groups: list[list[int]] = []
    sums = np.zeros_like(vectors)
    lengths = np.zeros(len(vectors), dtype=np.float32)
    for place, vector in enumerate(vectors):
        count = len(groups)
        at = count
        if count:
            likeness = (sums[:count] @ vector) / lengths[:count]
            best = int(np.argmax(likeness))
            if likeness[best] >= nearness:
                at = best
        if at == count:
            groups.append([])
        groups[at].append(place)
        sums[at] += vector
        # A text without a word has no direction; it is near nothing.
        lengths[at] = float(np.linalg.norm(sums[at])) or 1.0
    return groups


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
