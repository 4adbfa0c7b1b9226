"""The typed columns of records as an export writes them, and what an import takes for them.

In a file a column has its own name, with two exceptions. JSON stands there as JSON and not as a
text that holds some; and a column that refers to a memory by its number, which is another one in
every store, is called after it and holds the id: `goal_num` is `goal_memory`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from recollect.orchestrator.memories import typed_columns
from recollect.orchestrator.memories.memory_store import TYPED
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Row, Session
from recollect.protocol.operations.fields import INTEGER_MAX
from recollect.protocol.operations.working import GoalStatus, TaskStatus

NUMBER = "_num"
MEMORY = "_memory"

Moment = Annotated[int, Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""Microseconds since 1970, in the years 1 to 9999: others could not be shown."""
Id = Annotated[str, Meta(pattern=r"^[!-~]{1,128}\Z")]
Count = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Real = Annotated[float, Meta(ge=-1e300, le=1e300)]
Flag = Annotated[int, Meta(ge=0, le=1)]
Json = Annotated[Any, Meta(title="json")]

COLUMNS: dict[str, dict[str, Any]] = {
    "goals": {
        "status": GoalStatus,
        "priority": Real,
        "progress": Real,
        "due_us": Moment | None,
        "parent_num": Id | None,
        "ended_us": Moment | None,
    },
    "tasks": {
        "goal_num": Id | None,
        "task_type": str,
        "status": TaskStatus,
        "phase": str,
        "phase_reason": str,
        "assigned_to": str | None,
        "description": str,
        "summary": str,
        "steps": Count,
        "started_us": Moment | None,
        "ended_us": Moment | None,
    },
    "steps": {
        "task_num": Id,
        "iteration": Count,
        "tool_name": str,
        "parameters": Json,
        "output": str,
        "truncated": Flag,
        "success": Flag,
        "duration_ms": Real,
    },
    "events": {"category": str, "data": Json, "task_id": str | None},
    "decisions": {
        "task_id": str | None,
        "goal_num": Id | None,
        "receipt_id": str | None,
        "context": str,
        "options": Json,
        "choice": str,
        "reasoning": str,
        "confidence": Real,
        "outcome": str | None,
        "success": Flag | None,
        "outcome_us": Moment | None,
        "outcome_by": str | None,
    },
    "procedures": {"description": str, "steps": Json},
    "incidents": {
        "title": str,
        "description": str,
        "severity": Literal["low", "medium", "high", "critical"],
        "cause": str,
        "resolution": str,
        "occurred_us": Moment | None,
        "resolved_us": Moment | None,
    },
    "config_changes": {
        "component": str,
        "parameter": str,
        "old_value": Json,
        "new_value": Json,
        "reason": str,
    },
    "executions": {
        "task_id": str,
        "task_type": str,
        "task_description": str,
        "summary": str,
        "success": Flag,
        "error_patterns": Json,
        "duration_ms": Real | None,
        "reuse_count": Count,
    },
    "patterns": {
        "pattern_type": Literal["success", "failure", "mixed"],
        "task_type": str,
        "successes": Real,
        "failures": Real,
        "helped": Real,
        "misled": Real,
        "usage_count": Count,
        "confidence": Real,
        "standing": Real,
    },
}
assert COLUMNS.keys() == set(TYPED)
JSON = {
    table: frozenset(name for name, kind in columns.items() if kind is Json)
    for table, columns in COLUMNS.items()
}
SELECT = {
    table: f"SELECT num, {', '.join(columns)} FROM {table} WHERE num IN ({{marks}})"
    for table, columns in COLUMNS.items()
}
INSERT = {table: Insert(table, ("num", *columns)) for table, columns in COLUMNS.items()}
IDS = "SELECT num, id, namespace FROM memories WHERE num IN ({marks})"

Stored = dict[str, Any]
"""Columns as they lie in the table."""


def shown_name(column: str) -> str:
    """What a column is called in a file."""
    return column.removesuffix(NUMBER) + MEMORY if column.endswith(NUMBER) else column


def _shape(table: str, columns: tuple[str, ...], *, all_needed: bool) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for column in columns:
        kind = COLUMNS[table][column]
        if not all_needed:
            fields.append((shown_name(column), kind | UnsetType, UNSET))
        elif type(None) in get_args(kind):
            fields.append((shown_name(column), kind, None))
        else:
            fields.append((shown_name(column), kind))
    # What may be left out comes last.
    fields.sort(key=len)
    return msgspec.defstruct(f"{table}_columns", fields, frozen=True, forbid_unknown_fields=True)


SHAPES = {table: _shape(table, (*columns,), all_needed=True) for table, columns in COLUMNS.items()}
"""What a file must say of each table."""
VERSION_SHAPES = {
    table: _shape(table, columns, all_needed=False)
    for table, columns in typed_columns.VERSIONED.items()
}
"""What it may say in an earlier version; a release that had fewer columns kept fewer."""


def read(session: Session, table: str, nums: list[int]) -> dict[int, Stored]:
    """The columns of some memories; a short list of them."""
    sql = SELECT[table].format(marks=", ".join("?" for _ in nums))
    names = tuple(COLUMNS[table])
    return {num: dict(zip(names, row, strict=True)) for num, *row in session.execute(sql, nums)}


def references_in(columns: Stored | None) -> list[int]:
    """The numbers of memories that some columns refer to."""
    if not columns:
        return []
    return [n for name, n in columns.items() if name.endswith(NUMBER) and n is not None]


def places_of(session: Session, nums: list[int]) -> dict[int, Row]:
    """Id and namespace of some memories, by their numbers; a short list of them."""
    if not nums:
        return {}
    sql = IDS.format(marks=", ".join("?" for _ in nums))
    return {num: (memory_id, namespace) for num, memory_id, namespace in session.execute(sql, nums)}


def shown(table: str, columns: Stored, ids: dict[int, str]) -> dict[str, Any]:
    """Columns as a file has them; None for a reference to what is not among the ids."""
    told: dict[str, Any] = {}
    for name, value in columns.items():
        if name.endswith(NUMBER):
            told[shown_name(name)] = None if value is None else ids.get(value)
        elif name in JSON[table] and isinstance(value, str):
            told[name] = decode_json(value)
        else:
            told[name] = value
    return told
