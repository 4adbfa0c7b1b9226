"""Executions as they lie in their table, and as callers see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.memory_texts import OUTCOME_MARK
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow, decode_json
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import OUTSIDE
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.collection_names import EXECUTIONS
from recollect.protocol.records import ExecutionRecord


class ExecutionRow(msgspec.Struct):
    """One row of `executions`, in the order of its columns."""

    num: int
    task_id: str
    task_type: str
    task_description: str
    summary: str
    success: int
    error_patterns: str
    duration_ms: float | None
    reuse_count: int = 0


class Execution(msgspec.Struct, frozen=True):
    """An execution with its memory."""

    memory: MemoryRow
    row: ExecutionRow


INSERT = Insert("executions", ExecutionRow.__struct_fields__)
_COLUMNS = ", ".join(f"e.{name}" for name in ExecutionRow.__struct_fields__)
COLUMNS_OF = f"SELECT {_COLUMNS} FROM executions e WHERE e.num IN ({{marks}})"
_LIVING = "m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)"
# An archived execution is searched no more; it still was, so the list of its task has it.
OF_TASK = f"""
SELECT {JOINED_COLUMNS}, {_COLUMNS}
FROM executions e CROSS JOIN memories m
WHERE m.num = e.num AND e.task_id = ? AND m.namespace = ? AND {_LIVING}
ORDER BY e.num DESC LIMIT ?
"""
_HERE = f"m.{OUTSIDE} AND m.collection = '{EXECUTIONS}' AND m.namespace = ?"
# However rare a type is, no more than some of the newest are looked through for it.
NEWEST = f"""
SELECT m.num, e.task_type
FROM memories m CROSS JOIN executions e
WHERE {_HERE} AND m.num > coalesce((
        SELECT m.num FROM memories m WHERE {_HERE} ORDER BY m.num DESC LIMIT 1 OFFSET ?
    ), 0) AND m.archived_us IS NULL AND {_LIVING} AND e.num = m.num AND {{of}}
ORDER BY m.num DESC LIMIT ?
"""
LOOKED_THROUGH = 10
"""Executions of all types for each that is wanted."""
_MEMORY_COLUMNS = len(MemoryRow.__struct_fields__)


def text_of(description: str, summary: str, success: bool, errors: Sequence[str]) -> list[str]:
    """The lines of an execution's memory: the task, and what came of it."""
    outcome = "it went well." if success else "it did not go well."
    lines = [f"{description}{OUTCOME_MARK}{outcome}", summary]
    return [*lines, "Errors:", *(f"- {error}" for error in errors)] if errors else lines


def values_of(row: ExecutionRow) -> tuple[Any, ...]:
    """What `INSERT` inserts."""
    return msgspec.structs.astuple(row)


def such_as(task_type: str | None = None, *, success_only: bool = False) -> Condition:
    """A condition over `memories`: executions of a type, or that went well."""
    of, params = ["TRUE"], list[Any]()
    if task_type is not None:
        of.append("e.task_type = ?")
        params.append(task_type)
    if success_only:
        of.append("e.success = 1")
    sql = f"EXISTS (SELECT 1 FROM executions e WHERE e.num = memories.num AND {' AND '.join(of)})"
    return sql, params


def of_other_tasks(task_id: str) -> Condition:
    """A condition over `memories`: executions of any task but one."""
    return (
        "NOT EXISTS (SELECT 1 FROM executions e WHERE e.num = memories.num AND e.task_id = ?)",
        [task_id],
    )


def with_columns(session: Session, memories: Sequence[MemoryRow]) -> dict[int, Execution]:
    """The executions that some memories are, by number."""
    if not memories:
        return {}
    sql = COLUMNS_OF.format(marks=", ".join("?" for _ in memories))
    found = {row[0]: row for row in session.execute(sql, [memory.num for memory in memories])}
    return {
        memory.num: Execution(memory, ExecutionRow(*found[memory.num]))
        for memory in memories
        if memory.num in found
    }


def of_task(
    session: Session, namespace: str, task_id: str, now_us: int, limit: int
) -> list[Execution]:
    """How a task went, the newest first."""
    found = session.execute(OF_TASK, (task_id, namespace, now_us, limit))
    return [
        Execution(MemoryRow(*row[:_MEMORY_COLUMNS]), ExecutionRow(*row[_MEMORY_COLUMNS:]))
        for row in found
    ]


def newest(
    session: Session, namespace: str, now_us: int, most: int, task_type: str | None
) -> list[tuple[int, str]]:
    """Numbers and types of the newest executions in a namespace."""
    of, params = ("e.task_type = ?", [task_type]) if task_type is not None else ("TRUE", [])
    looked_at = most if task_type is None else LOOKED_THROUGH * most
    asked = (namespace, namespace, looked_at, now_us, *params, most)
    found = session.execute(NEWEST.format(of=of), asked)
    return [(num, kind) for num, kind in found]


def record_of(
    execution: Execution,
    pending: Callable[[int], int],
    similarity: float | None = None,
) -> ExecutionRecord:
    """The execution as callers see it; `pending` are reuses that are not yet written."""
    memory, row = execution.memory, execution.row
    record: ExecutionRecord = {
        "id": memory.id,
        "namespace": memory.namespace,
        "task_id": row.task_id,
        "task_type": row.task_type,
        "task_description": row.task_description,
        "execution_summary": row.summary,
        "success": bool(row.success),
        "error_patterns": decode_json(row.error_patterns),
        "duration_ms": row.duration_ms,
        "reuse_count": row.reuse_count + pending(row.num),
        "metadata": decode_json(memory.metadata),
        "tags": decode_json(memory.tags),
        "created_by": memory.created_by,
        "created_at": to_iso(memory.created_us),
    }
    if similarity is not None:
        record["similarity"] = similarity
    return record
