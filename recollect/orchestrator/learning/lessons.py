"""Lessons: what a group of like executions teaches, and how it becomes a pattern.

One group, one pattern. A later lesson of the same group finds the pattern that was learned from
these executions before, or that is for the same tasks, and makes its next version; what those who
used it said of it stays. All that is slow is done before the transaction, which looks again: if
somebody has learned more meanwhile, that stands.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.consolidation.lineage import DERIVED_FROM, link
from recollect.orchestrator.learning import patterns
from recollect.orchestrator.learning.gathering import MEMBERS_MAX, Material, overlapping
from recollect.orchestrator.learning.patterns import Pattern, PatternRow
from recollect.orchestrator.learning.wording import Learned, content_of, pattern_type, worded
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow
from recollect.orchestrator.memories.typed_memories import Draft, TypedMemories
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol.collection_names import PATTERNS
from recollect.protocol.operations import AddMemory

MEMORY_TYPE = "procedural"

Done = Literal["created", "updated", "confirmed"]


class Lesson(msgspec.Struct, frozen=True):
    """What a group teaches, ready to be written."""

    columns: PatternRow
    learned: Learned
    members: list[int]
    execution_ids: list[str]
    near_num: int | None
    draft: Draft

    def proposed(self) -> Pattern:
        """The pattern as it would be if there were none yet."""
        return Pattern(self.draft.row, self.columns.weighed(), self.execution_ids)


def learn(material: Material) -> tuple[PatternRow, Learned]:
    """What a group teaches."""
    compared = material.compared()
    failures = len(material.members) - material.successes
    columns = PatternRow(
        num=0,
        pattern_type=pattern_type(compared),
        task_type=material.task_type,
        successes=float(material.successes),
        failures=float(failures),
    )
    return columns, worded(material.trigger(), compared)


class Lessons:
    """Makes drafts of lessons, and patterns of these."""

    def __init__(self, typed: TypedMemories, validator: Validator) -> None:
        self._typed = typed
        self._validator = validator

    async def draft(
        self, call: Call, namespace: str, material: Material, columns: PatternRow, learned: Learned
    ) -> Lesson:
        """A lesson with the vector of what it is for."""
        adding = AddMemory(
            content_of(learned)[: self._validator.limits.content_chars_max],
            MEMORY_TYPE,
            "long",
            namespace=namespace,
            value=msgspec.structs.asdict(learned),
        )
        return Lesson(
            columns,
            learned,
            material.members,
            [one.id for one in reversed(material.lived)][: patterns.EVIDENCE_SHOWN_MAX],
            material.near_num,
            await self._typed.draft(call, PATTERNS, adding),
        )

    def apply(
        self, call: Call, transaction: WriteTransaction, lesson: Lesson
    ) -> tuple[MemoryRow, Done]:
        """Write a lesson as a new pattern, or as the next version of the one that it belongs to."""
        row = self._pattern(call, transaction, lesson)
        if row is None:
            return self._create(call, transaction, lesson), "created"
        call.require(row.namespace, row.id, "write")
        behind = patterns.evidence_of(transaction, row.num, call.now_us, MEMBERS_MAX + 1)
        before, members = {num for num, _ in behind}, set(lesson.members)
        oldest = lesson.members[0]
        if any(num > oldest for num in before - members):
            return row, "confirmed"  # it knows more than this lesson
        columns = patterns.columns_of(transaction, row.num)
        now = msgspec.structs.replace(
            columns,
            pattern_type=lesson.columns.pattern_type,
            successes=lesson.columns.successes,
            failures=lesson.columns.failures,
        ).weighed()
        if before == members and now == columns:
            return row, "confirmed"
        draft = lesson.draft
        changed = self._typed.change(
            call,
            transaction,
            row,
            draft.embedded,
            content=draft.row.content,
            value=draft.row.value,
        )
        transaction.execute(patterns.UPDATE, patterns.update_params(now))
        transaction.executemany(patterns.DROP_EVIDENCE, [(row.num, n) for n in before - members])
        self._add_evidence(call, transaction, row.num, sorted(members - before))
        return changed, "updated"

    def _create(self, call: Call, transaction: WriteTransaction, lesson: Lesson) -> MemoryRow:
        row = self._typed.insert(call, transaction, lesson.draft)
        columns = msgspec.structs.replace(lesson.columns, num=row.num).weighed()
        transaction.insert(patterns.INSERT, [msgspec.structs.astuple(columns)])
        self._add_evidence(call, transaction, row.num, lesson.members)
        return row

    def _add_evidence(
        self, call: Call, transaction: WriteTransaction, num: int, executions: list[int]
    ) -> None:
        transaction.executemany(patterns.ADD_EVIDENCE, [(num, one) for one in executions])
        # Whoever takes an execution back, or purges it, is told of what was made from it.
        link(call, transaction, num, DERIVED_FROM, executions)

    def _pattern(self, call: Call, session: Session, lesson: Lesson) -> MemoryRow | None:
        namespace = lesson.draft.row.namespace
        task_type = lesson.columns.task_type
        num = overlapping(session, namespace, task_type, lesson.members, call.now_us)
        found = None if num is None else _living(session, num, call.now_us)
        if found is None and lesson.near_num is not None:
            found = _living(session, lesson.near_num, call.now_us)
        return found


def _living(session: Session, num: int, now_us: int) -> MemoryRow | None:
    found = session.execute(SELECT_BY_NUM, (num,))
    row = MemoryRow(*found[0]) if found else None
    return row if row is not None and row.alive(now_us) else None
