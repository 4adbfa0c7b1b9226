"""What follows when the status of a goal or a task changes; any may follow any other."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso_or_none
from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.working.rows import GoalColumns, TaskColumns

GOAL_ENDED = ("completed", "failed", "abandoned")
TASK_ENDED = ("completed", "failed", "cancelled")


def goal_moved(columns: GoalColumns, status: str, now_us: int) -> GoalColumns:
    """A goal in a status; one that is taken up again has not ended."""
    if status == columns.status:
        return columns
    ended_us = now_us if status in GOAL_ENDED else None
    return msgspec.structs.replace(columns, status=status, ended_us=ended_us)


def task_moved(columns: TaskColumns, status: str, now_us: int) -> TaskColumns:
    """A task in a status; one that is taken up again has not ended, and began when it first did."""
    if status == columns.status:
        return columns
    started_us = columns.started_us
    if status == "in_progress" and started_us is None:
        started_us = now_us
    ended_us = now_us if status in TASK_ENDED else None
    return msgspec.structs.replace(columns, status=status, started_us=started_us, ended_us=ended_us)


# The tables know only how a record stands now. Beside its text, each version of its memory keeps
# how it stood then, so that its history and reads of the past tell that as well.


def goal_standing(columns: GoalColumns) -> str:
    """How a goal stands, as the value of its memory."""
    return _standing(
        goal_status=columns.status,
        priority=columns.priority,
        progress=columns.progress,
        due_at=to_iso_or_none(columns.due_us),
    )


def task_standing(columns: TaskColumns) -> str:
    """How a task stands, as the value of its memory."""
    return _standing(
        task_status=columns.status,
        phase=columns.phase,
        phase_reason=columns.phase_reason or None,
        assigned_to=columns.assigned_to,
    )


def _standing(**said: Any) -> str:
    return encode_json({name: value for name, value in said.items() if value is not None}).decode()
