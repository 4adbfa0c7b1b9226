"""Tasks: saved, moved from status to status and from phase to phase, and summed up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.memory_store import check_version
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.typed_memories import Draft, TypedMemories
from recollect.orchestrator.namespaces import readable_spans
from recollect.orchestrator.said import key_of, needed, optional
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working import reading, rows, summaries
from recollect.orchestrator.working.finding import Tasks
from recollect.orchestrator.working.rows import Task, TaskColumns
from recollect.orchestrator.working.statuses import TASK_ENDED, task_moved, task_standing
from recollect.orchestrator.working.texts import task_text
from recollect.orchestrator.working.workflow import Workflow
from recollect.protocol import records
from recollect.protocol.collection_names import GOALS, TASKS
from recollect.protocol.operations import (
    AddMemory,
    GetTask,
    RecentSummaries,
    SaveTask,
    SetTaskPhase,
    UpdateTaskStatus,
)
from recollect.tokens import TokenCounter

TIER: Final = "medium"
TASK_TYPE = "general"

TaskFunction = Callable[[WriteTransaction], records.TaskSaved]
TaskEnded = Callable[[str, str], None]
"""Told, once that is durable, the namespace and the name of a task that has ended."""


class TaskService:
    """What is being done."""

    def __init__(
        self,
        storage: Storage,
        typed: TypedMemories,
        tasks: Tasks,
        workflow: Workflow,
        validator: Validator,
        ids: IdSource,
        tokens: TokenCounter,
        task_ended: TaskEnded,
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._tasks = tasks
        self._workflow = workflow
        self._validator = validator
        self._ids = ids
        self._tokens = tokens
        self._task_ended = task_ended

    @writes(SaveTask)
    async def save_task(self, call: Call, operation: SaveTask) -> TaskFunction:
        check = self._validator
        task_id = self._ids.new() if operation.task_id is None else operation.task_id
        key = key_of(check, "task", "task_id", task_id)
        given = self._given(operation)
        adding = AddMemory(
            given["description"],
            "task",
            TIER,
            metadata=operation.metadata,
            tags=operation.tags,
            namespace=operation.namespace,
            key=key,
        )
        new = self._typed.row(call, TASKS, adding)

        def next_row(session: Session) -> MemoryRow:
            task = reading.find_task(call, session, operation.namespace, task_id)
            if task is None:
                return new
            text = self._text(msgspec.structs.replace(task.columns, **given))
            return msgspec.structs.replace(new, content=text)

        embedded = await self._typed.embed(await self._storage.read(next_row))

        def write(transaction: WriteTransaction) -> records.TaskSaved:
            holder = self._typed.holder(call, transaction, new)
            goal_num = self._served(call, transaction, operation.goal_id)
            if holder is None:
                if operation.expected_version is not None:
                    raise self._tasks.absent(
                        operation.namespace, task_id, "leave expected_version out to make it"
                    )
                columns = self._begun(call, operation, given, goal_num)
                return self._insert(call, transaction, new, embedded, columns)
            task = self._tasks.require(call, transaction, operation.namespace, task_id)
            check_version(task.memory, operation.expected_version)
            columns = msgspec.structs.replace(task.columns, **given)
            if goal_num is not None:
                columns = msgspec.structs.replace(columns, goal_num=goal_num)
            if operation.status is not None:
                columns = task_moved(columns, operation.status, call.now_us)
            if operation.phase is not None:
                columns = self._stepped(task, columns, operation.phase, "")
            changes: dict[str, Any] = {}
            if operation.metadata is not None:
                changes["metadata"] = new.metadata
            if operation.tags is not None:
                changes["tags"] = new.tags
            return self._change(call, transaction, task, columns, embedded, **changes)

        return write

    def _given(self, operation: SaveTask) -> dict[str, Any]:
        """What is given of a task's own columns, found good."""
        check = self._validator
        given: dict[str, Any] = {"description": needed(check, "description", operation.description)}
        if operation.task_type is not None:
            given["task_type"] = operation.task_type
        if operation.assigned_to is not None:
            given["assigned_to"] = check.text("assigned_to", operation.assigned_to, "key_chars_max")
        if operation.phase is not None:
            self._workflow.check(operation.phase)
        return given

    def _begun(
        self, call: Call, operation: SaveTask, given: dict[str, Any], goal_num: int | None
    ) -> TaskColumns:
        """A task that was not there before; it may begin in any phase."""
        columns = TaskColumns(
            num=0,
            goal_num=goal_num,
            status="pending",
            phase=operation.phase or self._workflow.first,
            phase_reason="",
            summary="",
            steps=0,
            started_us=None,
            ended_us=None,
            **({"task_type": TASK_TYPE, "assigned_to": None} | given),
        )
        return task_moved(columns, operation.status or columns.status, call.now_us)

    def _insert(
        self,
        call: Call,
        transaction: WriteTransaction,
        new: MemoryRow,
        embedded: Embedded,
        columns: TaskColumns,
    ) -> records.TaskSaved:
        new.value = task_standing(columns)
        if embedded.texts[0] != meaning_of(new):
            # It was there with a summary when the vector was made, and is gone since.
            embedded = Embedded(embedded.meaning, [meaning_of(new)], [None])
        row = self._typed.insert(call, transaction, Draft(new, embedded))
        columns = msgspec.structs.replace(columns, num=row.num)
        transaction.insert(rows.INSERT_TASK, [msgspec.structs.astuple(columns)])
        self._tell(transaction, row, columns)
        return saved(row, columns, row.seq, created=True)

    @writes(UpdateTaskStatus)
    async def update_task_status(self, call: Call, operation: UpdateTaskStatus) -> TaskFunction:
        place = self._tasks.place(operation.namespace, operation.task_id)
        summary = optional(self._validator, "summary", operation.summary)
        embedded = None
        if summary.strip():

            def next_row(session: Session) -> MemoryRow:
                task = self._tasks.require(call, session, *place)
                columns = msgspec.structs.replace(task.columns, summary=summary)
                return msgspec.structs.replace(task.memory, content=self._text(columns))

            embedded = await self._typed.embed_next(self._storage, next_row)

        def write(transaction: WriteTransaction) -> records.TaskSaved:
            task = self._tasks.require(call, transaction, *place)
            check_version(task.memory, operation.expected_version)
            columns = task_moved(task.columns, operation.status, call.now_us)
            if summary.strip():
                columns = msgspec.structs.replace(columns, summary=summary)
            if columns == task.columns:
                return saved(task.memory, columns, transaction.last_seq())
            return self._change(call, transaction, task, columns, embedded)

        return write

    @writes(SetTaskPhase)
    def set_task_phase(self, call: Call, operation: SetTaskPhase) -> TaskFunction:
        place = self._tasks.place(operation.namespace, operation.task_id)
        phase = self._workflow.check(operation.phase)
        reason = optional(self._validator, "reason", operation.reason)

        def write(transaction: WriteTransaction) -> records.TaskSaved:
            task = self._tasks.require(call, transaction, *place)
            check_version(task.memory, operation.expected_version)
            columns = self._stepped(task, task.columns, phase, reason)
            if columns == task.columns:
                return saved(task.memory, columns, transaction.last_seq())
            return self._change(call, transaction, task, columns, None)

        return write

    def _stepped(self, task: Task, columns: TaskColumns, phase: str, reason: str) -> TaskColumns:
        """The task in another phase, or in the same for another reason."""
        self._workflow.check_step(task.task_id, columns.phase, phase)
        if phase == columns.phase and not reason:
            return columns
        return msgspec.structs.replace(columns, phase=phase, phase_reason=reason)

    def _change(
        self,
        call: Call,
        transaction: WriteTransaction,
        task: Task,
        columns: TaskColumns,
        embedded: Embedded | None,
        **changes: Any,
    ) -> records.TaskSaved:
        """The next version of a task."""
        changes["content"] = self._text(columns)
        changes["value"] = task_standing(columns)
        row = self._typed.change(call, transaction, task.memory, embedded, **changes)
        transaction.execute(rows.UPDATE_TASK, rows.update_params(columns))
        if columns.status != task.columns.status:
            self._tell(transaction, row, columns)
        return saved(row, columns, row.seq)

    def _text(self, columns: TaskColumns) -> str:
        chars_max = self._validator.limits.content_chars_max
        return task_text(columns.description, columns.summary, chars_max)

    def _tell(self, transaction: WriteTransaction, row: MemoryRow, columns: TaskColumns) -> None:
        """Let those know who keep in view what is active."""
        if columns.status in TASK_ENDED:
            namespace, task_id = row.namespace, rows.name_of(row)
            transaction.after_commit.append(lambda: self._task_ended(namespace, task_id))

    def _served(self, call: Call, session: Session, goal_id: str | None) -> int | None:
        """The number of the goal that a task serves; to see it is enough."""
        if goal_id is None:
            return None
        return self._typed.require(call, session, GOALS, goal_id, "goal", "read").num

    @reads(GetTask)
    def get_task(self, call: Call, operation: GetTask) -> asyncio.Future[records.TaskFetched]:
        place = self._tasks.place(operation.namespace, operation.task_id)
        self._validator.at_most("page_items_max", "steps", operation.steps, "items")

        def read(session: Session) -> records.TaskFetched:
            task = self._tasks.require(call, session, *place)
            steps = reading.last_steps(call, session, task, operation.steps)
            return {
                "status": "success",
                "task": reading.task_record(call, task, self._workflow),
                "recent_steps": [reading.step_record(step, task.task_id) for step in steps],
            }

        return self._storage.read(read)

    @reads(RecentSummaries)
    def recent_summaries(
        self, call: Call, operation: RecentSummaries
    ) -> asyncio.Future[records.SummariesListed]:
        limit = self._validator.page(operation.limit)
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        spans = readable_spans(call, operation.namespace)

        def read(session: Session) -> records.SummariesListed:
            tasks = summaries.newest(call, session, spans, limit)
            told = summaries.within(self._tokens, tasks, operation.max_tokens)
            return {
                "status": "success",
                "summaries": told,
                "count": len(told),
                "tokens": sum(summary["tokens"] for summary in told),
            }

        return self._storage.read(read)


def saved(
    row: MemoryRow, columns: TaskColumns, seq: int, *, created: bool = False
) -> records.TaskSaved:
    """The answer to a change."""
    return {
        "status": "success",
        "task_id": rows.name_of(row),
        "memory_id": row.id,
        "created": created,
        "task_status": columns.status,
        "phase": columns.phase,
        "version": row.version,
        "seq": seq,
        "updated_at": to_iso(row.updated_us),
    }
