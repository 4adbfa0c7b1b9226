"""What is due to move on: found by its tier and by when it was last written, never by a look
through all that is stored.

Reading a memory does not keep it where it is; that is what fading is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Session

ROWS_AT_ONCE = 500

# The condition of the index by tier, word for word: what stays where it is is not even passed over.
MOVING = """
m.tier <> 'long' AND m.deleted_us IS NULL AND m.archived_us IS NULL
AND m.collection NOT IN ('agent_states', 'documents', 'personas', 'preferences')
"""
ALIVE = "(m.expires_us IS NULL OR m.expires_us > ?)"
# What is not finished stays in working memory, and with a task its steps.
FINISHED = """
NOT EXISTS (SELECT 1 FROM goals g WHERE g.num = m.num AND g.ended_us IS NULL)
AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.num = m.num AND t.ended_us IS NULL)
AND NOT EXISTS (
    SELECT 1 FROM steps s JOIN tasks t ON t.num = s.task_num JOIN memories o ON o.num = t.num
    WHERE s.num = m.num AND t.ended_us IS NULL AND o.deleted_us IS NULL
)
"""
BY_AGE = f"""
SELECT {JOINED_COLUMNS} FROM memories m
WHERE m.tier = ? AND m.updated_us < ? AND (m.updated_us, m.num) > (?, ?)
    AND {MOVING} AND {ALIVE} AND {{home}} AND {{finished}}
ORDER BY m.updated_us, m.num LIMIT ?
"""
# Counted from the index alone.
CROWDED = f"""
SELECT m.namespace, count(*) FROM memories m
WHERE m.tier = 'short' AND m.updated_us >= ? AND {MOVING} AND {ALIVE} AND {{home}}
GROUP BY m.namespace HAVING count(*) > ? ORDER BY m.namespace
"""
OLDEST = f"""
SELECT {JOINED_COLUMNS} FROM memories m
WHERE m.tier = 'short' AND m.updated_us >= ? AND {MOVING} AND {ALIVE} AND m.namespace || '' = ?
ORDER BY m.updated_us, m.num LIMIT ?
"""
TASKS_OF_STEPS = "SELECT num, task_num FROM steps WHERE num IN ({marks})"
TASKS_OF_EVENTS = "SELECT num, task_id FROM events WHERE task_id IS NOT NULL AND num IN ({marks})"


class Due(msgspec.Struct, frozen=True):
    """Memories that are due, the oldest first."""

    rows: list[MemoryRow]
    more: bool
    """Whether there are others."""


def of_operational(
    session: Session, call: Call, home: Condition, *, before_us: int, most: int, limit: int
) -> Due:
    """What leaves operational memory: what is older than that, and of namespaces with more than so
    many the oldest."""
    due = _by_age(session, call, home, "short", "TRUE", before_us, limit)
    if due.more:
        return due
    rows = due.rows
    sql, params = home
    crowded = session.execute(CROWDED.format(home=sql), (before_us, call.now_us, *params, most))
    for namespace, count in crowded:
        wanted = min(count - most, limit + 1 - len(rows))
        if wanted > 0:
            given = (before_us, call.now_us, namespace, wanted)
            rows += [MemoryRow(*row) for row in session.execute(OLDEST, given)]
    return Due(rows[:limit], len(rows) > limit)


def of_working(session: Session, call: Call, home: Condition, *, before_us: int, limit: int) -> Due:
    """What leaves working memory: what was not written for so long and is not still going on."""
    return _by_age(session, call, home, "medium", FINISHED, before_us, limit)


def _by_age(
    session: Session,
    call: Call,
    home: Condition,
    tier: str,
    finished: str,
    before_us: int,
    limit: int,
) -> Due:
    statement = BY_AGE.format(home=home[0], finished=finished)
    rows: list[MemoryRow] = []
    last: tuple[int, int] = (-1, -1)
    while len(rows) <= limit:
        at_once = min(ROWS_AT_ONCE, limit + 1 - len(rows))
        given = (tier, before_us, *last, call.now_us, *home[1], at_once)
        found = [MemoryRow(*row) for row in session.execute(statement, given)]
        rows += found
        if len(found) < at_once:
            break
        last = (found[-1].updated_us, found[-1].num)
    return Due(rows[:limit], len(rows) > limit)


def home_of(call: Call, namespace: str | None) -> Condition:
    """Where the caller may write, in a namespace and those below it.

    Said of an expression, so that memories are found by their tier and not by their namespace:
    there are more in one than are due.
    """
    column = "(m.namespace || '')"
    patterns = call.grants.within(namespace, "write")
    if patterns is None:
        return ("TRUE", []) if namespace is None else namespace_condition(namespace, column)
    return readable_condition(patterns, column)


def tasks_of(session: Session, rows: Sequence[MemoryRow]) -> dict[int, str]:
    """The task that a step or an event belongs to, by the number of its memory."""
    found: dict[int, str] = {}
    for part in _parts([row.num for row in rows if row.collection in ("steps", "events")]):
        marks = ", ".join("?" for _ in part)
        for kind, statement in (("step", TASKS_OF_STEPS), ("event", TASKS_OF_EVENTS)):
            for num, task in session.execute(statement.format(marks=marks), part):
                found[num] = f"{kind} of {task}"
    return found


def _parts(nums: list[int]) -> Iterator[list[Any]]:
    for start in range(0, len(nums), ROWS_AT_ONCE):
        yield nums[start : start + ROWS_AT_ONCE]
