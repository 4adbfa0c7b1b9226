"""Steps of tasks: the tools that were called, with what, and what came back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.rows import decode_json, encode_json
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.said import named
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working import reading, rows
from recollect.orchestrator.working.finding import Tasks
from recollect.orchestrator.working.rows import StepColumns
from recollect.orchestrator.working.texts import OUTPUT_CHARS_MAX, kept_output, step_text
from recollect.protocol import records
from recollect.protocol.collection_names import STEPS
from recollect.protocol.operations import AddMemory, ListSteps, SaveStep

TIER: Final = "short"
LOOKED_THROUGH_CHARS = OUTPUT_CHARS_MAX + 8_192
"""A secret that begins before the cut is known by what follows."""
COUNT_STEP = "UPDATE tasks SET steps = steps + 1 WHERE num = ?"
STEPS_OF = f"""
{rows.STEPS} WHERE p.task_num = ? AND p.num > ? AND {rows.ALIVE} ORDER BY p.num LIMIT ?
"""


class StepService:
    """What was done for a task."""

    def __init__(
        self, storage: Storage, typed: TypedMemories, tasks: Tasks, validator: Validator
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._tasks = tasks
        self._validator = validator

    @writes(SaveStep)
    async def save_step(
        self, call: Call, operation: SaveStep
    ) -> Callable[[WriteTransaction], records.StepSaved]:
        check = self._validator
        place = self._tasks.place(operation.namespace, operation.task_id)
        tool_name = named(check, "tool_name", operation.tool_name)
        parameters = check.json("parameters", operation.parameters or {}, "value_bytes_max")
        output, truncated = self._kept(operation.output)
        text = step_text(
            tool_name,
            decode_json(parameters),
            output,
            operation.success,
            check.limits.content_chars_max,
        )
        adding = AddMemory(text, "step", TIER, namespace=operation.namespace)
        draft = await self._typed.draft(call, STEPS, adding)
        columns = StepColumns(
            num=0,
            task_num=0,
            iteration=operation.iteration,
            tool_name=tool_name,
            parameters=parameters,
            output=output,
            truncated=int(truncated),
            success=int(operation.success),
            duration_ms=operation.duration_ms,
        )

        def write(transaction: WriteTransaction) -> records.StepSaved:
            task = self._tasks.require(call, transaction, *place)
            # A part of its task: what is done with the whole is done with it.
            draft.row.parent_id = task.memory.id
            row = self._typed.insert(call, transaction, draft)
            stored = msgspec.structs.replace(columns, num=row.num, task_num=task.columns.num)
            transaction.insert(rows.INSERT_STEP, [msgspec.structs.astuple(stored)])
            transaction.execute(COUNT_STEP, (task.columns.num,))
            return {
                "status": "success",
                "step_id": row.id,
                "task_id": operation.task_id,
                "truncated": truncated,
                "seq": row.seq,
                "at": to_iso(row.created_us),
            }

        return write

    def _kept(self, output: Any) -> tuple[str, bool]:
        """What is kept of an output, and whether that is not all."""
        if output is None:
            return "", False
        text = output if isinstance(output, str) else self._as_json(output)
        beginning = text[:LOOKED_THROUGH_CHARS]
        return kept_output(
            self._validator.prose("output", beginning, "payload_bytes_max"), len(text)
        )

    def _as_json(self, output: Any) -> str:
        """A JSON value as text; what is larger than a value may be is not looked through."""
        check = self._validator
        try:
            encoded = encode_json(output)
        except (TypeError, ValueError, RecursionError):
            encoded = b""
        if len(encoded) > check.limits.value_bytes_max:
            return encoded.decode()
        return check.json("output", output, "value_bytes_max")

    @reads(ListSteps)
    def list_steps(self, call: Call, operation: ListSteps) -> asyncio.Future[records.StepsListed]:
        limit = self._validator.page(operation.limit)
        place = self._tasks.place(operation.namespace, operation.task_id)
        position = read_cursor(operation, operation.cursor, 1) or [0]

        def read(session: Session) -> records.StepsListed:
            task = self._tasks.require(call, session, *place)
            params = (task.columns.num, position[0], call.now_us, limit + 1)
            found = [rows.step_in(row) for row in session.execute(STEPS_OF, params)]
            more, found = len(found) > limit, found[:limit]
            return {
                "status": "success",
                "steps": [reading.step_record(step, task.task_id) for step in found],
                "count": len(found),
                "cursor": make_cursor(operation, [found[-1].columns.num]) if more else None,
            }

        return self._storage.read(read)
