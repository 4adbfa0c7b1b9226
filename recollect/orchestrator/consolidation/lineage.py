"""What became of what: links from a memory to those it was made from, or that it stands for.

`derived_from` says that a text was made from another one: whoever takes that one back must take
back what was made from it. `replaces` says that a memory was kept and another archived for it.
Both are relationships like any other, so they can be walked along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recollect.orchestrator.calls import Call
from recollect.orchestrator.consolidation.runs import RUN_KINDS
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.operations import Consolidate

DERIVED_FROM = "derived_from"
REPLACES = "replaces"

LINK = """
INSERT INTO relationships
    (source_num, relationship_type, target_num, strength, created_us, created_by)
VALUES (?, ?, ?, 1.0, ?, ?)
ON CONFLICT (source_num, relationship_type, target_num) DO NOTHING
"""
# Such a link is as old as what was archived for it; anybody else's is of another moment.
UNLINK = """
DELETE FROM relationships
WHERE target_num = ? AND relationship_type = 'replaces' AND created_us = ?
"""
MADE_FROM = """
SELECT source_num, target_num, created_us FROM relationships
WHERE relationship_type = 'derived_from' AND target_num IN ({marks})
"""
MADE_FROM_ANY = """
SELECT DISTINCT source_num FROM relationships
WHERE relationship_type = 'derived_from' AND target_num IN ({marks}) LIMIT ?
"""
KINDS = ", ".join(f"'{kind}'" for kind in sorted(RUN_KINDS))
# What a run archived for one of some memories, and nobody else has touched since. It did so when it
# wrote that one in the same run, or kept it as consolidation does: anybody may draw such a link to
# what decay archived for its own sake.
STOOD_FOR = f"""
SELECT r.target_num, max(i.version_before), m.version
FROM relationships r
JOIN run_items i ON i.num = r.target_num AND i.action IN ('archived', 'summarised')
    AND i.undone = 0
JOIN memories m ON m.num = r.target_num
WHERE r.source_num IN ({{marks}})
    AND (
        r.relationship_type = 'derived_from' AND EXISTS (
            SELECT 1 FROM run_items made
            WHERE made.num = r.source_num AND made.run_id = i.run_id AND made.action = 'created'
        )
        OR r.relationship_type = 'replaces' AND EXISTS (
            SELECT 1 FROM runs WHERE runs.id = i.run_id AND runs.kind = '{Consolidate.spec.name}'
        )
    )
    AND m.archived_us IS NOT NULL AND m.deleted_us IS NULL AND m.operation IN ({KINDS})
GROUP BY r.target_num, m.version
"""
MARKS_MAX = 500
DESCENDANTS_MAX = 1_000
"""That are looked for; beyond, they are found from the first of them."""


def link(
    call: Call,
    transaction: WriteTransaction,
    num: int,
    kind: str,
    targets: Iterable[int],
    at_us: int | None = None,
) -> None:
    """Note what a memory was made from or stands for, since now or another moment."""
    since_us = call.now_us if at_us is None else at_us
    for target in targets:
        transaction.execute(LINK, (num, kind, target, since_us, call.author))


def made_from(session: Session, nums: Sequence[int]) -> list[tuple[int, int, int]]:
    """What was made from some memories: its number, that of its source, and when."""
    return _in_parts(session, MADE_FROM, nums)


def descendants(session: Session, nums: Sequence[int]) -> list[int]:
    """What was made from some memories, and from that in turn, without those themselves."""
    known, found = set(nums), list[int]()
    waiting = list(nums)
    while waiting and len(found) < DESCENDANTS_MAX:
        part, waiting = waiting[:MARKS_MAX], waiting[MARKS_MAX:]
        sql = MADE_FROM_ANY.format(marks=", ".join("?" for _ in part))
        # What is known may come again, and must not take the place of what is not.
        made = session.execute(sql, (*part, len(known) + DESCENDANTS_MAX))
        fresh = [num for (num,) in made if num not in known][: DESCENDANTS_MAX - len(found)]
        known.update(fresh)
        found += fresh
        waiting += fresh
    return found


def stood_for(session: Session, nums: Sequence[int]) -> list[tuple[int, int, int]]:
    """What some memories stand for: number, version before it was archived, and present one."""
    return _in_parts(session, STOOD_FOR, nums)


def _in_parts(session: Session, sql: str, nums: Sequence[int]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for start in range(0, len(nums), MARKS_MAX):
        part = nums[start : start + MARKS_MAX]
        marks = ", ".join("?" for _ in part)
        found += [(a, b, c) for a, b, c in session.execute(sql.format(marks=marks), part)]
    return found
