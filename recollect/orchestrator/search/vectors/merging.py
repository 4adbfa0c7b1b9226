"""Which segments to make one of."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.search.vectors.segment import Living

# A segment is at least this many times as large as all smaller ones together, so their number grows
# with the logarithm of the vectors and each vector is rewritten a few times in all.
GROWTH = 3
# The same while nothing is written: there is time then to have fewer segments.
GROWTH_IDLE = 10
# A segment is rewritten when this share of it is gone.
TOMBSTONES_SHARE_MAX = 0.3
TOMBSTONES_SHARE_MAX_IDLE = 0.1
# One merge takes no more segments than this at once.
SOURCES_MAX = 64


def to_merge(segments: Sequence[Living], ivf_min: int, *, idle: bool = False) -> list[Living]:
    """The segments to be merged next, or one to be rewritten; none when all is well."""
    growth = GROWTH_IDLE if idle else GROWTH
    by_size = sorted(segments, key=lambda living: living.living)[:SOURCES_MAX]
    chosen, total = 0, 0
    for position, living in enumerate(by_size):
        if position and living.living <= growth * total:
            chosen = position + 1
        total += living.living
    if chosen:
        return by_size[:chosen]
    share = TOMBSTONES_SHARE_MAX_IDLE if idle else TOMBSTONES_SHARE_MAX
    for living in by_size:
        rows = len(living.segment)
        if rows - living.living > share * rows:
            return [living]
        if living.segment.ivf is None and living.living >= ivf_min:
            return [living]
    return []
