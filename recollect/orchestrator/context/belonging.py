"""What belongs to the task at hand: its own record, its steps, its decisions and how it went."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.authorship import metadata_of
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.storage.interface import Row, Session
from recollect.orchestrator.working.reading import TASK_KEY
from recollect.protocol.operations import AssembleContext
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE

BELONGING_MAX = 50
BY_ID = "SELECT num FROM memories WHERE id IN ({marks}) AND {condition}"
OWN_RECORD = """
SELECT num, id FROM memories
WHERE namespace = ? AND key = ? AND deleted_us IS NULL AND collection = 'tasks'
"""
OF_TASK = """
SELECT num FROM memories WHERE num IN (
    SELECT num FROM decisions WHERE task_id = ?
    UNION ALL SELECT num FROM executions WHERE task_id = ?
) AND {condition} ORDER BY num DESC LIMIT ?
"""
OF_RECORD = """
SELECT num FROM memories WHERE num IN (
    SELECT num FROM memories WHERE num = ?
    UNION ALL SELECT num FROM steps WHERE task_num = ?
    UNION ALL SELECT num FROM memories WHERE parent_id = ?
) AND {condition} ORDER BY num DESC LIMIT ?
"""


def pinned_nums(
    session: Session, operation: AssembleContext, scope: Scope, ids: Sequence[str]
) -> list[int]:
    """The last memories of the task at hand, and some by their ids, as far as a scope has them."""
    condition, params = scope.condition
    found: list[Row] = []
    if ids:
        by_id = BY_ID.format(marks=", ".join("?" for _ in ids), condition=condition)
        found += session.execute(by_id, (*ids, *params))
    if (task_id := operation.task_id) is not None:
        of_task = OF_TASK.format(condition=condition)
        found += session.execute(of_task, (task_id, task_id, *params, BELONGING_MAX))
        place = (operation.namespace or DEFAULT_NAMESPACE, TASK_KEY.format(task_id))
        for num, memory_id in session.execute(OWN_RECORD, place):
            of_record = OF_RECORD.format(condition=condition)
            found += session.execute(of_record, (num, num, memory_id, *params, BELONGING_MAX))
    return [*dict.fromkeys(num for (num,) in found)]


def says_task(row: MemoryRow, task_id: str) -> bool:
    """Whether a memory says itself to which task it belongs."""
    return metadata_of(row).get("task_id") == task_id
