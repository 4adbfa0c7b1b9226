"""Goals: set, changed, and seen with how their tasks stand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import UNSET

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import parse_moment, to_iso
from recollect.orchestrator.memories.memory_store import check_version
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.said import needed
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working import reading, rows
from recollect.orchestrator.working.rows import Goal, GoalColumns
from recollect.orchestrator.working.statuses import goal_moved, goal_standing
from recollect.orchestrator.working.workflow import Workflow
from recollect.protocol import records
from recollect.protocol.collection_names import GOALS
from recollect.protocol.errors import CycleRefused, InvalidArgument
from recollect.protocol.operations import (
    ActiveGoals,
    AddMemory,
    GetGoal,
    StoreGoal,
    TasksForGoal,
    UpdateGoal,
)

TIER: Final = "medium"
CHANGEABLE = ("status", "progress", "description", "priority")
# The depth bounds the walk even if a cycle had come into the table.
SERVES = """
WITH RECURSIVE up (num, depth) AS (
    SELECT num, 1 FROM goals WHERE num = ?
    UNION
    SELECT g.parent_num, up.depth + 1 FROM goals g JOIN up ON g.num = up.num
    WHERE g.parent_num IS NOT NULL AND up.depth < 10000
)
SELECT 1 FROM up WHERE num = ? LIMIT 1
"""
TASKS_OF = f"""
{rows.TASKS} WHERE t.goal_num = ? AND t.num > ? AND {rows.ALIVE} AND {{readable}}
ORDER BY t.num LIMIT ?
"""
TASKS_BY_STATUS = f"""
SELECT t.status, count(*) FROM tasks t JOIN memories m ON m.num = t.num
WHERE t.goal_num = ? AND {rows.ALIVE} AND {{readable}} GROUP BY t.status ORDER BY t.status
"""

GoalFunction = Callable[[WriteTransaction], records.GoalChanged]


class GoalService:
    """What is to be reached."""

    def __init__(
        self, storage: Storage, typed: TypedMemories, workflow: Workflow, validator: Validator
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._workflow = workflow
        self._validator = validator

    @writes(StoreGoal)
    async def store_goal(self, call: Call, operation: StoreGoal) -> GoalFunction:
        columns = GoalColumns(
            num=0,
            status="active",
            priority=operation.priority,
            progress=0.0,
            due_us=parse_moment("due_at", operation.due_at),
            parent_num=None,
            ended_us=None,
        )
        adding = AddMemory(
            needed(self._validator, "description", operation.description),
            "goal",
            TIER,
            operation.priority,
            operation.metadata,
            operation.tags,
            namespace=operation.namespace,
        )
        draft = await self._typed.draft(call, GOALS, adding)
        draft.row.value = goal_standing(columns)

        def write(transaction: WriteTransaction) -> records.GoalChanged:
            parent_num = self._served(call, transaction, operation.parent_goal_id)
            row = self._typed.insert(call, transaction, draft)
            stored = msgspec.structs.replace(columns, num=row.num, parent_num=parent_num)
            transaction.insert(rows.INSERT_GOAL, [msgspec.structs.astuple(stored)])
            return changed(row, stored, row.seq)

        return write

    @writes(UpdateGoal)
    async def update_goal(self, call: Call, operation: UpdateGoal) -> GoalFunction:
        given = [name for name in CHANGEABLE if getattr(operation, name) is not None]
        if not given and operation.due_at is operation.parent_goal_id is UNSET:
            raise InvalidArgument(
                f"Name what to change: {', '.join(CHANGEABLE)}, due_at or parent_goal_id.",
                field="status",
            )
        due_us = None if operation.due_at is UNSET else parse_moment("due_at", operation.due_at)
        description, embedded = operation.description, None
        if description is not None:
            content = needed(self._validator, "description", description)

            def next_row(session: Session) -> MemoryRow:
                memory = self._require(call, session, operation.goal_id).memory
                return msgspec.structs.replace(memory, content=content)

            embedded = await self._typed.embed_next(self._storage, next_row)

        def write(transaction: WriteTransaction) -> records.GoalChanged:
            goal = self._require(call, transaction, operation.goal_id)
            old = goal.memory
            check_version(old, operation.expected_version)
            columns = self._changed(call, transaction, operation, goal.columns, due_us)
            text = old.content if description is None else content
            if (columns, text) == (goal.columns, old.content):
                return changed(old, columns, transaction.last_seq())
            importance = old.importance if operation.priority is None else columns.priority
            row = self._typed.change(
                call,
                transaction,
                old,
                embedded,
                content=text,
                value=goal_standing(columns),
                importance=importance,
            )
            transaction.execute(rows.UPDATE_GOAL, rows.update_params(columns))
            return changed(row, columns, row.seq)

        return write

    def _changed(
        self,
        call: Call,
        session: Session,
        operation: UpdateGoal,
        columns: GoalColumns,
        due_us: int | None,
    ) -> GoalColumns:
        """The goal with what is given changed."""
        if operation.status is not None:
            columns = goal_moved(columns, operation.status, call.now_us)
        for name in ("progress", "priority"):
            if (value := getattr(operation, name)) is not None:
                columns = msgspec.structs.replace(columns, **{name: value})
        if operation.due_at is not UNSET:
            columns = msgspec.structs.replace(columns, due_us=due_us)
        if operation.parent_goal_id is not UNSET:
            parent_num = self._served(call, session, operation.parent_goal_id)
            if parent_num is not None and session.execute(SERVES, (parent_num, columns.num)):
                raise CycleRefused(
                    f"The goal {operation.parent_goal_id} is {operation.goal_id} itself or serves "
                    "it, so it cannot be served by it.",
                    parent_goal_id=operation.parent_goal_id,
                )
            columns = msgspec.structs.replace(columns, parent_num=parent_num)
        return columns

    @reads(GetGoal)
    def get_goal(self, call: Call, operation: GetGoal) -> asyncio.Future[records.GoalFetched]:
        # Of others' tasks not even the number is told.
        readable, patterns = reading.readable_in(call, None)
        sql = TASKS_BY_STATUS.format(readable=readable)

        def read(session: Session) -> records.GoalFetched:
            goal = self._require(call, session, operation.goal_id)
            counted = session.execute(sql, (goal.columns.num, call.now_us, *patterns))
            return {
                "status": "success",
                "goal": reading.goal_record(call, goal),
                "tasks": {status: count for status, count in counted},
            }

        return self._storage.read(read)

    @reads(ActiveGoals)
    def active_goals(
        self, call: Call, operation: ActiveGoals
    ) -> asyncio.Future[records.GoalsListed]:
        limit = self._validator.page(operation.limit)
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)

        def read(session: Session) -> records.GoalsListed:
            found = reading.active_goals(call, session, operation.namespace, limit)
            return {
                "status": "success",
                "goals": [reading.goal_record(call, goal) for goal in found],
                "count": len(found),
            }

        return self._storage.read(read)

    @reads(TasksForGoal)
    def tasks_for_goal(
        self, call: Call, operation: TasksForGoal
    ) -> asyncio.Future[records.TasksListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1) or [0]
        readable, patterns = reading.readable_in(call, None)
        sql = TASKS_OF.format(readable=readable)

        def read(session: Session) -> records.TasksListed:
            goal = self._require(call, session, operation.goal_id)
            params = (goal.columns.num, position[0], call.now_us, *patterns, limit + 1)
            found = [rows.task_in(row) for row in session.execute(sql, params)]
            more, found = len(found) > limit, found[:limit]
            return {
                "status": "success",
                "tasks": [reading.task_record(call, task, self._workflow) for task in found],
                "count": len(found),
                "cursor": make_cursor(operation, [found[-1].columns.num]) if more else None,
            }

        return self._storage.read(read)

    def _require(self, call: Call, session: Session, goal_id: str) -> Goal:
        """A living goal that the caller may see and do with what the operation does."""
        row = self._typed.require(call, session, GOALS, goal_id, "goal")
        [found] = session.execute(reading.GOAL_BY_NUM, (row.num,))
        return rows.goal_in(found)

    def _served(self, call: Call, session: Session, goal_id: str | None) -> int | None:
        """The number of a goal that another serves; to see it is enough."""
        if goal_id is None:
            return None
        return self._typed.require(call, session, GOALS, goal_id, "goal", "read").num


def changed(row: MemoryRow, columns: GoalColumns, seq: int) -> records.GoalChanged:
    """The answer to a change."""
    return {
        "status": "success",
        "goal_id": row.id,
        "goal_status": columns.status,
        "version": row.version,
        "seq": seq,
        "updated_at": to_iso(row.updated_us),
    }
