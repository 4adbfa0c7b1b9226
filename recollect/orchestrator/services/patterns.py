"""Patterns: learned from executions, listed, suggested for a task, and rated by who used them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from recollect.config.agents import LearningSettings
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.learning import executions, patterns
from recollect.orchestrator.learning.chat_wording import ChatWording
from recollect.orchestrator.learning.expressions import Expression
from recollect.orchestrator.learning.extraction import Extracted, Extraction
from recollect.orchestrator.learning.lessons import Lessons
from recollect.orchestrator.learning.patterns import record_of
from recollect.orchestrator.learning.suggesting import Suggesting
from recollect.orchestrator.memories.rows import SELECT_BY_ID, MemoryRow
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.services.searching import check_threshold
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.reading import readable_in
from recollect.protocol import records
from recollect.protocol.collection_names import EXECUTIONS, PATTERNS
from recollect.protocol.errors import NotFound
from recollect.protocol.operations import (
    ExtractPattern,
    FindPattern,
    PatternFeedback,
    SearchPatterns,
)

TYPES_MAX = 1_000
"""Types of tasks that an expression is compared with."""


class PatternService:
    """What was learned."""

    def __init__(
        self,
        storage: Storage,
        typed: TypedMemories,
        similar: Similar,
        extraction: Extraction,
        lessons: Lessons,
        wording: ChatWording,
        validator: Validator,
        settings: LearningSettings,
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._similar = similar
        self._suggesting = Suggesting(similar)
        self._extraction = extraction
        self._lessons = lessons
        self._wording = wording
        self._validator = validator
        self._settings = settings

    @writes(ExtractPattern)
    async def extract_pattern(
        self, call: Call, operation: ExtractPattern
    ) -> Callable[[WriteTransaction], dict[str, Any]]:
        namespace = self._validator.namespace(operation.namespace)
        call.require(namespace)
        ids = operation.execution_ids
        if ids is not None:
            self._validator.at_most("batch_items_max", "execution_ids", len(ids), "items")
        if operation.task_type is not None:
            self._validator.asked("task_type", operation.task_type, "key_chars_max")
        extracted = await self._extraction.through(
            call,
            namespace,
            lambda session: self._chosen(call, session, operation),
            self._wording.of_call(),
        )

        def write(transaction: WriteTransaction) -> dict[str, Any]:
            # No text of a memory may be in an answer that is kept, so the texts come after.
            if operation.dry_run:
                return _counted([], extracted)
            done = [self._lessons.apply(call, transaction, one) for one in extracted.lessons]
            return _counted([(row.id, what) for row, what in done], extracted)

        async def finish(counted: dict[str, Any]) -> records.PatternsExtracted:
            pattern_ids = counted.pop("pattern_ids")
            if operation.dry_run:
                learned = [record_of(lesson.proposed()) for lesson in extracted.lessons]
            else:
                learned = await self._storage.read(
                    lambda session: self._records(call, session, pattern_ids)
                )
            return cast("records.PatternsExtracted", {**counted, "patterns": learned})

        write.finish = finish  # type: ignore[attr-defined]
        return write

    def _chosen(
        self, call: Call, session: Session, operation: ExtractPattern
    ) -> Sequence[tuple[int, str]]:
        """The executions to learn from."""
        namespace, task_type = operation.namespace, operation.task_type
        most = self._settings.examined_max
        if operation.execution_ids is None:
            return executions.newest(session, namespace, call.now_us, most, task_type)
        found: list[MemoryRow] = []
        for execution_id in dict.fromkeys(operation.execution_ids):
            row = self._typed.require(call, session, EXECUTIONS, execution_id, "execution")
            if row.namespace != namespace:
                raise NotFound(
                    f"There is no execution {execution_id!r} in {namespace}.",
                    memory_id=execution_id,
                )
            found.append(row)
        known = executions.with_columns(session, found[:most])
        return [
            (num, one.row.task_type)
            for num, one in known.items()
            if task_type is None or one.row.task_type == task_type
        ]

    def _records(
        self, call: Call, session: Session, pattern_ids: Sequence[str]
    ) -> list[records.PatternRecord]:
        found = [row for one in pattern_ids for row in session.execute(SELECT_BY_ID, (one,))]
        memories = [MemoryRow(*row) for row in found]
        living = [memory for memory in memories if memory.alive(call.now_us)]
        return [record_of(one) for one in patterns.with_columns(session, living, call.now_us)]

    @reads(SearchPatterns)
    def search_patterns(
        self, call: Call, operation: SearchPatterns
    ) -> asyncio.Future[records.PatternsListed]:
        limit = self._validator.page(operation.limit)
        check = self._validator.asked
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        expression = None
        if operation.task_type is not None:
            expression = Expression(check("task_type", operation.task_type, "key_chars_max"))
        readable, home = readable_in(call, operation.namespace)

        def read(session: Session) -> records.PatternsListed:
            of, params = ["TRUE"], list[Any]()
            if expression is not None:
                sql = patterns.TYPES.format(readable=readable)
                types = session.execute(sql, (*home, call.now_us, TYPES_MAX))
                fitting = [kind for (kind,) in types if expression.contains(kind)]
                of.append(f"p.task_type IN ({', '.join('?' for _ in fitting)})")
                params += fitting
                if not fitting:
                    return {"status": "success", "patterns": [], "count": 0}
            if operation.pattern_type is not None:
                of.append("p.pattern_type = ?")
                params.append(operation.pattern_type)
            sql = patterns.LIST.format(of=" AND ".join(of), readable=readable)
            asked = (*params, operation.min_confidence, call.now_us, *home, limit)
            listed = [
                record_of(patterns.read_joined(session, row, call.now_us))
                for row in session.execute(sql, asked)
            ]
            return {"status": "success", "patterns": listed, "count": len(listed)}

        return self._storage.read(read)

    @reads(FindPattern)
    async def find_pattern(self, call: Call, operation: FindPattern) -> records.PatternFound:
        self._validator.asked("trigger", operation.trigger, "query_chars_max")
        threshold = self._settings.pattern_similarity
        if operation.threshold is not None:
            threshold = check_threshold(operation.threshold)
        question = await self._similar.question(call, operation.trigger)
        found = await self._storage.read(
            lambda session: self._suggesting.patterns(
                call, session, question, 1, threshold=threshold, namespace=operation.namespace
            )
        )
        self._similar.served(call, [(pattern.memory, score) for pattern, score in found])
        best = [record_of(pattern, score) for pattern, score in found]
        return {"status": "success", "pattern": best[0] if best else None}

    @writes(PatternFeedback)
    def pattern_feedback(
        self, call: Call, operation: PatternFeedback
    ) -> Callable[[WriteTransaction], records.PatternRated]:
        def write(transaction: WriteTransaction) -> records.PatternRated:
            memory = self._typed.require(
                call, transaction, PATTERNS, operation.pattern_id, "pattern"
            )
            before = patterns.columns_of(transaction, memory.num)
            rated = msgspec.structs.replace(
                before,
                helped=before.helped + operation.success,
                misled=before.misled + (not operation.success),
                usage_count=before.usage_count + 1,
            ).weighed()
            changed = self._typed.change(call, transaction, memory)
            transaction.execute(patterns.UPDATE, patterns.update_params(rated))
            return {
                "status": "success",
                "pattern_id": memory.id,
                "confidence": rated.confidence,
                "successes": rated.successes + rated.helped,
                "failures": rated.failures + rated.misled,
                "usage_count": rated.usage_count,
                "version": changed.version,
                "seq": changed.seq,
            }

        return write


def _counted(done: Sequence[tuple[str, str]], extracted: Extracted) -> dict[str, Any]:
    return {
        "status": "success",
        "pattern_ids": list(dict.fromkeys(pattern_id for pattern_id, _ in done)),
        "created": sum(what == "created" for _, what in done),
        "updated": sum(what == "updated" for _, what in done),
        "examined": extracted.examined,
    }
