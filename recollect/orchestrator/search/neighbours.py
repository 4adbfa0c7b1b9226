"""What stands around a memory: the turns of its session before and after it, parent, siblings."""

from __future__ import annotations

from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.rows import MemoryRow
from recollect.orchestrator.search.nearest import among
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.storage.interface import Session

BEFORE = """
SELECT num FROM memories WHERE session_id = ? AND num < ? AND deleted_us IS NULL
ORDER BY num DESC LIMIT ?
"""
AFTER = """
SELECT num FROM memories WHERE session_id = ? AND num > ? AND deleted_us IS NULL
ORDER BY num LIMIT ?
"""
PARENT = "SELECT num FROM memories WHERE id = ? AND deleted_us IS NULL"
SIBLINGS = """
SELECT num FROM memories WHERE parent_id = ? AND num <> ? AND deleted_us IS NULL
ORDER BY created_us, num LIMIT ?
"""


class Neighbours:
    """Finds what stands around a memory, within the scope of the question."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def of(self, session: Session, row: MemoryRow, count: int, scope: Scope) -> list[MemoryRow]:
        """Its neighbours, in the order in which they were written."""
        nums: set[int] = set()
        if row.session_id is not None:
            for sql in (BEFORE, AFTER):
                nums.update(n for (n,) in session.execute(sql, (row.session_id, row.num, count)))
        if row.parent_id is not None:
            nums.update(n for (n,) in session.execute(PARENT, (row.parent_id,)))
            nums.update(n for (n,) in session.execute(SIBLINGS, (row.parent_id, row.num, count)))
        visible = among(session, sorted(nums), scope.condition)
        found = self._store.rows_of(session, [(num, None) for num in sorted(visible)])
        return [near for near, _ in found]
