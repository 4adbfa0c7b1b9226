"""Executions: kept with how they went, learned from, and found when a like task comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.learning import executions
from recollect.orchestrator.learning.executions import Execution, ExecutionRow, record_of
from recollect.orchestrator.learning.extraction import Extraction
from recollect.orchestrator.learning.lessons import Lessons
from recollect.orchestrator.learning.reuse import ReuseLog
from recollect.orchestrator.learning.suggesting import Suggesting
from recollect.orchestrator.memories.rows import SELECT_BY_ID, MemoryRow, encode_json
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.said import key_of, needed, several, together
from recollect.orchestrator.search.similar import Similar
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.reading import find_task
from recollect.protocol import records
from recollect.protocol.collection_names import EXECUTIONS
from recollect.protocol.errors import RecollectError
from recollect.protocol.operations import AddMemory, SearchSimilar, StoreExecution

log = structlog.get_logger()

# What happened: the same may happen twice, so consolidation leaves it alone.
MEMORY_TYPE = "episodic"
TASK_TYPE_DEFAULT = "general"
FIRST_LINE_CHARS_MAX = 1_000


class LearningService:
    """How tasks went."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        typed: TypedMemories,
        similar: Similar,
        extraction: Extraction,
        lessons: Lessons,
        reuse: ReuseLog,
        validator: Validator,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._typed = typed
        self._similar = similar
        self._suggesting = Suggesting(similar)
        self._extraction = extraction
        self._lessons = lessons
        self._reuse = reuse
        self._validator = validator

    @writes(StoreExecution)
    async def store_execution(
        self, call: Call, operation: StoreExecution
    ) -> Callable[[WriteTransaction], records.ExecutionStored]:
        check = self._validator
        namespace = check.namespace(operation.namespace)
        call.require(namespace, operation.task_id)
        row = await self._row(call, operation)
        errors = several(
            check, "error_patterns", operation.error_patterns or [], "error_patterns_max"
        )
        row.error_patterns = encode_json(errors).decode()
        lines = executions.text_of(row.task_description, row.summary, operation.success, errors)
        adding = AddMemory(
            together(check, "task_description, execution_summary and error_patterns", lines),
            MEMORY_TYPE,
            "medium",
            namespace=namespace,
            metadata=operation.metadata,
            tags=operation.tags,
        )
        draft = await self._typed.draft(call, EXECUTIONS, adding)

        def write(transaction: WriteTransaction) -> records.ExecutionStored:
            memory = self._typed.insert(call, transaction, draft)
            row.num = memory.num
            transaction.insert(executions.INSERT, [executions.values_of(row)])
            return {
                "status": "success",
                "execution_id": memory.id,
                "seq": memory.seq,
                "created_at": to_iso(memory.created_us),
                "patterns": [],
            }

        async def finish(stored: records.ExecutionStored) -> records.ExecutionStored:
            return {**stored, "patterns": await self._learned(call, stored["execution_id"])}

        if operation.auto_extract_patterns:
            write.finish = finish  # type: ignore[attr-defined]
        return write

    async def _row(self, call: Call, operation: StoreExecution) -> ExecutionRow:
        """The columns of an execution; what is not said comes from the saved task."""
        check = self._validator
        key_of(check, "task", "task_id", operation.task_id)
        summary = needed(check, "execution_summary", operation.execution_summary)
        description, task_type = operation.task_description, operation.task_type
        if description is not None:
            description = needed(check, "task_description", description)
        if description is None or task_type is None:
            task = await self._storage.read(
                lambda session: find_task(call, session, operation.namespace, operation.task_id)
            )
            if task is not None:
                description = description or task.columns.description
                task_type = task_type or task.columns.task_type
        return ExecutionRow(
            num=0,
            task_id=operation.task_id,
            task_type=task_type or TASK_TYPE_DEFAULT,
            task_description=(description or _first_line(summary)).strip(),
            summary=summary,
            success=int(operation.success),
            error_patterns="[]",
            duration_ms=operation.duration_ms,
        )

    async def _learned(self, call: Call, execution_id: str) -> list[str]:
        """Ids of the patterns that an execution taught or confirmed.

        It is stored by now, and durable. So this is a transaction of its own: what goes wrong here
        takes nothing of that back, those stored at the same time see each other, and the writer is
        not held up while executions are compared. A repeated request learns again what is known.
        """
        try:
            return await self._learn(call, execution_id)
        except RecollectError as error:
            log.warning("Nothing was learned.", action="learn", reason=error.message)
        except Exception:
            log.exception("Nothing was learned, by a defect.", action="learn")
        return []

    async def _learn(self, call: Call, execution_id: str) -> list[str]:
        def find(session: Session) -> Execution | None:
            found = session.execute(SELECT_BY_ID, (execution_id,))
            memories = [MemoryRow(*row) for row in found]
            known = executions.with_columns(session, [m for m in memories if m.present])
            return next(iter(known.values()), None)

        execution = await self._storage.read(find)
        if execution is None:
            return []
        memory, row = execution.memory, execution.row
        extracted = await self._extraction.around(call, memory.namespace, row.task_type, memory.num)
        if not extracted.lessons:
            return []

        def write(transaction: WriteTransaction) -> list[str]:
            applied = (self._lessons.apply(call, transaction, one) for one in extracted.lessons)
            return [pattern.id for pattern, _ in applied]

        return await self._writes.write(call, write)

    @reads(SearchSimilar)
    async def search_similar(self, call: Call, operation: SearchSimilar) -> records.ExecutionsFound:
        k = self._validator.page(operation.top_k)
        check = self._validator.asked
        check("task_description", operation.task_description, "query_chars_max")
        if operation.task_type is not None:
            check("task_type", operation.task_type, "key_chars_max")
        question = await self._similar.question(call, operation.task_description)
        found = await self._storage.read(
            lambda session: self._suggesting.executions(
                call,
                session,
                question,
                k,
                threshold=operation.similarity_threshold,
                namespace=operation.namespace,
                only=executions.such_as(operation.task_type, success_only=operation.success_only),
            )
        )
        results = self.shown(call, found)
        return {"status": "success", "results": results, "count": len(results)}

    def pending(self, num: int) -> int:
        """Reuses of an execution that are not yet written."""
        return self._reuse.pending(num)

    def shown(
        self, call: Call, found: Sequence[tuple[Execution, float]]
    ) -> list[records.ExecutionRecord]:
        """What was found, counted as read and as reused; on the event loop's thread."""
        self._similar.served(call, [(one.memory, score) for one, score in found])
        for one, _ in found:
            self._reuse.note(one.row.num)
        return [record_of(one, self._reuse.pending, score) for one, score in found]


def _first_line(summary: str) -> str:
    return summary.strip().partition("\n")[0][:FIRST_LINE_CHARS_MAX]
