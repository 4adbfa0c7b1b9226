"""What has faded, found by the one column that says when: never by a look through all that is
stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.tiers.due import ALIVE, FINISHED
from recollect.protocol.operations import FadeMemories

ROWS_AT_ONCE = 500

# With whether it is finished: what is going on is not for decay to move.
FADED = f"""
SELECT {JOINED_COLUMNS}, CASE WHEN {FINISHED} THEN 1 ELSE 0 END FROM memories m
WHERE m.fades_us <= ? AND (m.fades_us, m.num) > (?, ?)
    AND m.deleted_us IS NULL AND m.archived_us IS NULL AND {ALIVE} AND {{home}}
ORDER BY m.fades_us, m.num LIMIT ?
"""
# What decay itself brought there, by where that was: found by the time, so that the namespace is an
# expression, by which nothing is found.
ARCHIVED_SINCE = f"""
SELECT namespace || '', count(*) FROM memories
WHERE archived_us > ? AND deleted_us IS NULL AND operation = '{FadeMemories.spec.name}'
GROUP BY namespace || ''
"""
# Unless it was used meanwhile, which has moved it already.
PUT_OFF = "UPDATE memories SET fades_us = ? WHERE num = ? AND fades_us = ?"


class Faded(msgspec.Struct, frozen=True):
    """Memories that have faded, the longest ago first."""

    rows: list[MemoryRow]
    unfinished: frozenset[int]
    """The numbers of those among them that are still going on."""
    more: bool
    """Whether there are others."""


def read_faded(call: Call, home: Condition, limit: int, session: Session) -> Faded:
    """What has faded by now in some place."""
    statement = FADED.format(home=home[0])
    rows: list[MemoryRow] = []
    unfinished: set[int] = set()
    last: tuple[int, int] = (-1, -1)
    while len(rows) <= limit:
        at_once = min(ROWS_AT_ONCE, limit + 1 - len(rows))
        given = (call.now_us, *last, call.now_us, *home[1], at_once)
        found = session.execute(statement, given)
        for *columns, finished in found:
            rows.append(MemoryRow(*columns))
            if not finished:
                unfinished.add(rows[-1].num)
        if len(found) < at_once:
            break
        last = (rows[-1].fades_us, rows[-1].num)
    return Faded(rows[:limit], frozenset(unfinished), len(rows) > limit)


def archived_since(since_us: int, session: Session) -> dict[str, int]:
    """How many memories decay has archived since a moment, by their namespace."""
    return {home: count for home, count in session.execute(ARCHIVED_SINCE, (since_us,))}


def put_off(
    store: MemoryStore,
    rows: Sequence[MemoryRow],
    moments_us: Sequence[int],
    transaction: WriteTransaction,
) -> None:
    """Have decay look at some memories again at other moments. Nothing that they say changes by
    that, nor how strong they are, so it is no version and no change that is followed."""
    for row, moment_us in zip(rows, moments_us, strict=True):
        transaction.execute(PUT_OFF, (moment_us, row.num, row.fades_us))

    def forget() -> None:
        for row in rows:
            store.cache.drop(row.id)

    transaction.after_commit.append(forget)
