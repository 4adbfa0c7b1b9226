"""Patterns as they lie in their table, and as callers see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.learning.posterior import Posterior
from recollect.orchestrator.learning.wording import Learned
from recollect.orchestrator.memories.memory_texts import LEARNED_MARK
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.search.scope import OUTSIDE
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.collection_names import PATTERNS
from recollect.protocol.records import PatternRecord

EVIDENCE_SHOWN_MAX = 100


class PatternRow(msgspec.Struct, frozen=True):
    """One row of `patterns`, in the order of its columns."""

    num: int
    pattern_type: str
    task_type: str
    successes: float
    failures: float
    helped: float = 0.0
    misled: float = 0.0
    usage_count: int = 0
    confidence: float = 0.0
    standing: float = 0.0

    def weighed(self) -> PatternRow:
        """The row with what follows from its evidence."""
        posterior = Posterior(self.successes + self.helped, self.failures + self.misled)
        return msgspec.structs.replace(
            self, confidence=posterior.confidence, standing=posterior.standing
        )


class Pattern(msgspec.Struct, frozen=True):
    """A pattern with its memory and the ids of executions behind it."""

    memory: MemoryRow
    row: PatternRow
    executions: list[str]


INSERT = Insert("patterns", PatternRow.__struct_fields__)
_CHANGED = PatternRow.__struct_fields__[1:]
UPDATE = f"UPDATE patterns SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE num = ?"
ADD_EVIDENCE = """
INSERT INTO pattern_evidence (pattern_num, execution_num) VALUES (?, ?)
ON CONFLICT (pattern_num, execution_num) DO NOTHING
"""
DROP_EVIDENCE = "DELETE FROM pattern_evidence WHERE pattern_num = ? AND execution_num = ?"
_COLUMNS = ", ".join(f"p.{name}" for name in PatternRow.__struct_fields__)
COLUMNS_OF = f"SELECT {_COLUMNS} FROM patterns p WHERE p.num IN ({{marks}})"
_LIVING = "m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)"
# No standing is below 0: said so, they are read in the order of their index.
LIST = f"""
SELECT {JOINED_COLUMNS}, {_COLUMNS}
FROM patterns p CROSS JOIN memories m
WHERE m.num = p.num AND p.standing >= 0 AND {{of}} AND p.confidence >= ?
    AND m.archived_us IS NULL AND {_LIVING}
    AND {{readable}}
ORDER BY p.standing DESC, p.num DESC LIMIT ?
"""
TYPES = f"""
SELECT DISTINCT p.task_type FROM memories m CROSS JOIN patterns p
WHERE m.{OUTSIDE} AND m.collection = '{PATTERNS}' AND {{readable}} AND p.num = m.num
    AND m.archived_us IS NULL AND {_LIVING}
ORDER BY p.task_type LIMIT ?
"""
EVIDENCE = f"""
SELECT e.execution_num, m.id FROM pattern_evidence e CROSS JOIN memories m
WHERE m.num = e.execution_num AND e.pattern_num = ? AND {_LIVING}
ORDER BY e.execution_num DESC LIMIT ?
"""
# Living patterns that were learned from some of these, with from how many.
LEARNED_FROM = f"""
SELECT e.pattern_num, count(*) FROM pattern_evidence e
    CROSS JOIN patterns p CROSS JOIN memories m
WHERE e.execution_num IN ({{marks}}) AND p.num = e.pattern_num AND m.num = p.num
    AND m.namespace = ? AND p.task_type = ? AND {_LIVING}
GROUP BY e.pattern_num ORDER BY count(*) DESC, e.pattern_num LIMIT 8
"""
EVIDENCE_COUNT = "SELECT count(*) FROM pattern_evidence WHERE pattern_num = ?"
_MEMORY_COLUMNS = len(MemoryRow.__struct_fields__)
_learned = msgspec.json.Decoder(Learned)


def update_params(row: PatternRow) -> tuple[Any, ...]:
    """The parameters of `UPDATE`."""
    return (*(getattr(row, name) for name in _CHANGED), row.num)


def columns_of(session: Session, num: int) -> PatternRow:
    """The columns of a pattern that is there."""
    [row] = rows_of(session, [num])
    return row


def rows_of(session: Session, nums: Sequence[int]) -> list[PatternRow]:
    """The columns of some patterns, in no order."""
    if not nums:
        return []
    sql = COLUMNS_OF.format(marks=", ".join("?" for _ in nums))
    return [PatternRow(*row) for row in session.execute(sql, nums)]


def with_columns(session: Session, memories: Sequence[MemoryRow], now_us: int) -> list[Pattern]:
    """The patterns that some memories are, in the same order."""
    found = {row.num: row for row in rows_of(session, [memory.num for memory in memories])}
    return [
        _whole(session, memory, found[memory.num], now_us)
        for memory in memories
        if memory.num in found
    ]


def read_joined(session: Session, row: Sequence[Any], now_us: int) -> Pattern:
    """A pattern from a row of the list."""
    memory = MemoryRow(*row[:_MEMORY_COLUMNS])
    return _whole(session, memory, PatternRow(*row[_MEMORY_COLUMNS:]), now_us)


def evidence_of(session: Session, num: int, now_us: int, most: int) -> list[tuple[int, str]]:
    """Numbers and ids of the living executions behind a pattern, the newest first."""
    return [(n, id) for n, id in session.execute(EVIDENCE, (num, now_us, most))]


def _whole(session: Session, memory: MemoryRow, row: PatternRow, now_us: int) -> Pattern:
    behind = evidence_of(session, row.num, now_us, EVIDENCE_SHOWN_MAX)
    return Pattern(memory, row, [id for _, id in behind])


def learned_of(memory: MemoryRow) -> Learned:
    """What a pattern says; of one whose value somebody replaced, what it is for."""
    try:
        return _learned.decode(memory.value or "")
    except msgspec.MsgspecError:
        trigger, _, summary = memory.content.partition(LEARNED_MARK)
        return Learned(trigger, summary)


def record_of(pattern: Pattern, similarity: float | None = None) -> PatternRecord:
    """The pattern as callers see it."""
    memory, row = pattern.memory, pattern.row
    learned = learned_of(memory)
    record: PatternRecord = {
        "id": memory.id,
        "namespace": memory.namespace,
        "version": memory.version,
        "pattern_type": row.pattern_type,
        "task_type": row.task_type,
        "trigger": learned.trigger,
        "summary": learned.summary,
        "success_indicators": learned.success_indicators,
        "failure_indicators": learned.failure_indicators,
        "recommended_context": learned.recommended_context,
        "confidence": row.confidence,
        "successes": row.successes + row.helped,
        "failures": row.failures + row.misled,
        "usage_count": row.usage_count,
        "executions": pattern.executions,
        "created_at": to_iso(memory.created_us),
        "updated_at": to_iso(memory.updated_us),
    }
    if similarity is not None:
        record["similarity"] = similarity
    return record
