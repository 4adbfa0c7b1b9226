"""Decisions as they lie in their table, and as callers see them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow, decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Row, Session
from recollect.orchestrator.working.reading import shown
from recollect.orchestrator.working.rows import SERVED, SERVED_COLUMNS
from recollect.protocol.records import DecisionRecord

PAST_ALL = (1 << 63) - 1
"""A number past that of every memory, where the first page begins."""


class DecisionRow(msgspec.Struct):
    """One row of `decisions`, in the order of its columns."""

    num: int
    task_id: str | None
    goal_num: int | None
    receipt_id: str | None
    context: str
    options: str
    choice: str
    reasoning: str
    confidence: float
    outcome: str | None = None
    success: int | None = None
    outcome_us: int | None = None
    outcome_by: str | None = None


class Decision(msgspec.Struct, frozen=True):
    """A decision with its memory, and with the memory of the goal that it serves."""

    memory: MemoryRow
    row: DecisionRow
    goal: Row


INSERT = Insert("decisions", DecisionRow.__struct_fields__)
values_of = msgspec.structs.astuple
SET_OUTCOME = """
UPDATE decisions SET outcome = ?, success = ?, outcome_us = ?, outcome_by = ? WHERE num = ?
"""
_COLUMNS = ", ".join(f"d.{name}" for name in DecisionRow.__struct_fields__)
_GOAL = SERVED.format(num="d.goal_num")
COLUMNS_OF = f"""
SELECT {_COLUMNS}, {SERVED_COLUMNS} FROM decisions d {_GOAL} WHERE d.num IN ({{marks}})
"""
# An archived decision is searched no more; it still was made, so lists have it.
_LIVING = "m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)"
# The decisions come first, in the order of an index of theirs, and each brings its memory.
LIST = f"""
SELECT {JOINED_COLUMNS}, {_COLUMNS}, {SERVED_COLUMNS}
FROM decisions d CROSS JOIN memories m {_GOAL}
WHERE m.num = d.num AND {{of}} AND d.num < ? AND {_LIVING} AND {{readable}}
ORDER BY d.num DESC LIMIT ?
"""
WITH_OUTCOME = (
    "EXISTS (SELECT 1 FROM decisions d WHERE d.num = memories.num AND d.outcome IS NOT NULL)"
)
"""A condition over `memories`: a decision of which the outcome is known."""
_MEMORY_COLUMNS = len(MemoryRow.__struct_fields__)


def with_columns(session: Session, memories: Sequence[MemoryRow]) -> list[Decision]:
    """The decisions that some memories are, in the same order."""
    if not memories:
        return []
    sql = COLUMNS_OF.format(marks=", ".join("?" for _ in memories))
    found = {row[0]: row for row in session.execute(sql, [memory.num for memory in memories])}
    return [
        Decision(memory, DecisionRow(*found[memory.num][:-3]), tuple(found[memory.num][-3:]))
        for memory in memories
        if memory.num in found
    ]


def read_joined(row: Row) -> Decision:
    """A decision from a row of one of the lists."""
    memory = MemoryRow(*row[:_MEMORY_COLUMNS])
    return Decision(memory, DecisionRow(*row[_MEMORY_COLUMNS:-3]), tuple(row[-3:]))


def record_of(call: Call, decision: Decision, similarity: float | None = None) -> DecisionRecord:
    """The decision as callers see it."""
    memory, row = decision.memory, decision.row
    record: DecisionRecord = {
        "id": memory.id,
        "namespace": memory.namespace,
        "version": memory.version,
        "context": row.context,
        "options": decode_json(row.options),
        "choice": row.choice,
        "reasoning": row.reasoning,
        "confidence": row.confidence,
        "goal_id": shown(call, decision.goal),
        "task_id": row.task_id,
        "receipt_id": row.receipt_id,
        "decided_by": memory.created_by,
        "decided_at": to_iso(memory.created_us),
        "outcome": row.outcome,
        "success": None if row.success is None else bool(row.success),
        "outcome_at": to_iso_or_none(row.outcome_us),
        "outcome_by": row.outcome_by,
        "metadata": decode_json(memory.metadata),
        "tags": decode_json(memory.tags),
    }
    if similarity is not None:
        record["similarity"] = similarity
    return record
