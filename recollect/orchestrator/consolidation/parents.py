"""Memories that a run put back, and the parents that they had.

Those may be gone since, or hang below them.
"""

from __future__ import annotations

from recollect.orchestrator.memories.memory_store import hangs_below
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.storage.interface import Session

ROWS_AT_ONCE = 50
DETACHED = "detached"

# A parent may come back after what hangs below it, so this is asked when all is done.
HANGING = f"""
SELECT i.position, {JOINED_COLUMNS} FROM run_items i
JOIN memories m ON m.num = i.num
LEFT JOIN memories p ON p.id = m.parent_id AND p.deleted_us IS NULL
WHERE i.run_id = ? AND i.position > ? AND i.undone = ? AND m.deleted_us IS NULL
    AND m.parent_id IS NOT NULL AND p.num IS NULL
ORDER BY i.position LIMIT ?
"""


def free_of_cycle(session: Session, row: MemoryRow, target: MemoryRow) -> MemoryRow:
    """What a memory is to be again, without a parent that hangs below it by now."""
    parent_id = target.parent_id
    if parent_id is None or parent_id == row.parent_id:
        return target
    if not hangs_below(session, parent_id, row.id):
        return target
    target.parent_id = None
    return target


def hanging(
    session: Session, run_id: str, after: int, undone: int
) -> tuple[dict[int, MemoryRow], int | None]:
    """Memories of a run that live and whose parent does not, some at a time: those by their number,
    and behind which of its items the next ones are; None if there are no more."""
    found = session.execute(HANGING, (run_id, after, undone, ROWS_AT_ONCE))
    rows = {row[1]: MemoryRow(*row[1:]) for row in found}
    return rows, found[-1][0] if len(found) == ROWS_AT_ONCE else None
