"""What stands around a memory: the turns of its session before and after it, parent, siblings."""

from __future__ import annotations

from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.storage.interface import Session

BEFORE = """
SELECT num FROM memories WHERE session_id = ? AND num < ? AND {condition}
ORDER BY num DESC LIMIT ?
"""
AFTER = """
SELECT num FROM memories WHERE session_id = ? AND num > ? AND {condition}
ORDER BY num LIMIT ?
"""
PARENT = "SELECT num FROM memories WHERE id = ? AND {condition}"
SIBLINGS = """
SELECT num FROM memories WHERE parent_id = ? AND num <> ? AND {condition}
ORDER BY created_us, num LIMIT ?
"""


class Neighbours:
    """Finds what stands around a memory, within the scope of the question."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def of(self, session: Session, row: MemoryRow, count: int, scope: Scope) -> list[MemoryRow]:
        """Its neighbours, in the order in which they were written."""
        condition, params = scope.condition

        def find(sql: str, *given: str | int, limit: tuple[int, ...] = (count,)) -> set[int]:
            found = session.execute(sql.format(condition=condition), (*given, *params, *limit))
            return {num for (num,) in found}

        nums: set[int] = set()
        if row.session_id is not None:
            nums |= find(BEFORE, row.session_id, row.num) | find(AFTER, row.session_id, row.num)
        if row.parent_id is not None:
            nums |= find(PARENT, row.parent_id, limit=())
            nums |= find(SIBLINGS, row.parent_id, row.num)
        near = self._store.rows_of(session, [(num, None) for num in sorted(nums)])
        return [neighbour for neighbour, _ in near]
