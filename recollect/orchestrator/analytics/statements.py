"""What is asked of the database about the store as a whole, each within a bound.

There is no index by age of creation or by use, and keeping one would cost every write and every
read that counts. So the newest memories stand for the rest: numbers are given out in the order of
creation, and the primary key finds the newest without a look at the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.memories.rows import PRESENT
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session

DAY_US = 86_400_000_000
NAMES_MAX = 50

SAMPLE = """
SELECT num, namespace, tier, memory_type, collection, created_by, access_count, last_access_us,
    created_us, expires_us, archived_us, deleted_us
FROM memories ORDER BY num DESC LIMIT ?
"""
EXTENT = f"SELECT count(*), min(num), min(created_us) FROM ({SAMPLE}) AS sample"
ANY_OLDER = "SELECT num FROM memories WHERE num < ? ORDER BY num DESC LIMIT 1"
GROWTH = f"""
SELECT created_us / {DAY_US}, tier, count(*) FROM ({SAMPLE}) AS sample
WHERE created_us >= ? AND {{home}} GROUP BY 1, 2
"""
ALIVE = f"{PRESENT} AND (expires_us IS NULL OR expires_us > ?)"
COUNTS = f"""
SELECT memory_type, tier, collection, created_by, count(*) FROM ({SAMPLE}) AS sample
WHERE {ALIVE} AND {{home}} GROUP BY 1, 2, 3, 4
"""
MOST_USED = f"""
SELECT num FROM ({SAMPLE}) AS sample WHERE {ALIVE} AND access_count > 0 AND {{home}}
ORDER BY access_count DESC, last_access_us DESC, num LIMIT ?
"""
LEAST_USED = f"""
SELECT num FROM ({SAMPLE}) AS sample WHERE {ALIVE} AND {{home}}
ORDER BY access_count, last_access_us, num LIMIT ?
"""
FADING = f"""
SELECT num, fades_us, namespace, expires_us FROM memories
WHERE {PRESENT} AND fades_us > ? AND fades_us <= ? ORDER BY fades_us LIMIT ?
"""
FADING_BY_DAY = f"""
SELECT fades_us / {DAY_US}, count(*) FROM ({FADING}) AS soon
WHERE (expires_us IS NULL OR expires_us > ?) AND {{home}} GROUP BY 1
"""
FADING_FIRST = f"""
SELECT num FROM ({FADING}) AS soon
WHERE (expires_us IS NULL OR expires_us > ?) AND {{home}} ORDER BY fades_us, num LIMIT ?
"""
FADING_EXAMINED = f"SELECT count(*) FROM ({FADING}) AS soon"


class Reach(msgspec.Struct, frozen=True):
    """Of what is asked, and how much of it is looked at."""

    home: Condition
    now_us: int
    growth_from_us: int
    sample_max: int
    fading_max: int
    listed_max: int


class Findings(msgspec.Struct, frozen=True):
    """Numbers of memories and counts; nothing of what they say, so it may be kept for a while."""

    examined: int
    sampled: bool
    examined_since_us: int | None
    growth: dict[tuple[int, str], int]
    by_type: dict[str, int]
    by_tier: dict[str, int]
    by_collection: dict[str, int]
    by_agent: dict[str, int]
    most_used: list[int]
    least_used: list[int]
    fading_by_day: dict[int, int]
    fading_first: list[int]
    faded: int
    fading_complete: bool


def find(session: Session, reach: Reach) -> Findings:
    """All that is asked, on one snapshot of the store."""
    home, home_params = reach.home
    sample, now = reach.sample_max, reach.now_us
    [(examined, first, since_us)] = session.execute(EXTENT, (sample,))
    growth = session.execute(GROWTH.format(home=home), (sample, reach.growth_from_us, *home_params))
    counts = session.execute(COUNTS.format(home=home), (sample, now, *home_params))
    used = (sample, now, *home_params, reach.listed_max)
    most = session.execute(MOST_USED.format(home=home), used)
    least = session.execute(LEAST_USED.format(home=home), used)
    soon = (now, now + 7 * DAY_US, reach.fading_max)
    by_day = session.execute(FADING_BY_DAY.format(home=home), (*soon, now, *home_params))
    first_soon = session.execute(
        FADING_FIRST.format(home=home), (*soon, now, *home_params, reach.listed_max)
    )
    past = (-1, now, reach.fading_max)
    faded = session.execute(FADING_BY_DAY.format(home=home), (*past, now, *home_params))
    looked_at = [session.execute(FADING_EXAMINED, span)[0][0] for span in (soon, past)]
    return Findings(
        examined=examined,
        sampled=bool(examined) and bool(session.execute(ANY_OLDER, (first,))),
        examined_since_us=since_us,
        growth={(day, tier): count for day, tier, count in growth},
        by_type=_most([(row[0], row[4]) for row in counts]),
        by_tier=_most([(row[1], row[4]) for row in counts]),
        by_collection=_most([(row[2], row[4]) for row in counts]),
        by_agent=_most([(row[3], row[4]) for row in counts if row[3] is not None]),
        most_used=[num for (num,) in most],
        least_used=[num for (num,) in least],
        fading_by_day=dict(by_day),
        fading_first=[num for (num,) in first_soon],
        faded=sum(count for _, count in faded),
        fading_complete=max(looked_at) < reach.fading_max,
    )


def _most(pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    """What belongs together summed up, the most frequent first."""
    sums: dict[str, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    ranked = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ranked[:NAMES_MAX])
