"""What of working memory other parts need: a task, its goal, its last steps, the active goals.

Each is read with the row of its memory, and only if that is there and the caller may see it.
"""

from __future__ import annotations

from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.search.filters import Condition, namespace_condition
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Row, Session
from recollect.orchestrator.working import rows
from recollect.orchestrator.working.rows import Goal, Step, Task
from recollect.orchestrator.working.workflow import Workflow
from recollect.protocol import records

TASK_KEY = "task/{}"
TASK_BY_KEY = f"{rows.TASKS} WHERE m.namespace = ? AND m.key = ? AND m.deleted_us IS NULL"
GOAL_BY_NUM = f"{rows.GOALS} WHERE g.num = ?"
LAST_STEPS = f"{rows.STEPS} WHERE p.task_num = ? AND {rows.ALIVE} ORDER BY p.num DESC LIMIT ?"
# The index of active goals has them in this order; a goal without a date comes last.
ACTIVE_GOALS = f"""
{rows.GOALS_IN_ORDER} AND g.status = 'active' AND {rows.ALIVE} AND {{readable}}
ORDER BY g.priority DESC, coalesce(g.due_us, 9223372036854775807), g.num LIMIT ?
"""


def find_task(call: Call, session: Session, namespace: str, task_id: str) -> Task | None:
    """The task of that name in a namespace; None as well if the caller may not see it."""
    key = TASK_KEY.format(task_id)
    if not call.sees(namespace, key):
        return None
    found = session.execute(TASK_BY_KEY, (namespace, key))
    task = rows.task_in(found[0]) if found else None
    return task if task is not None and task.memory.alive(call.now_us) else None


def find_goal(call: Call, session: Session, num: int) -> Goal | None:
    """The goal that something serves, by its number; None as well if the caller may not see it."""
    found = session.execute(GOAL_BY_NUM, (num,))
    goal = rows.goal_in(found[0]) if found else None
    if goal is None or not goal.memory.alive(call.now_us):
        return None
    # Nobody asked for it by name, so that it is hidden is no denial to speak of.
    return goal if call.grants.allows(goal.memory.namespace, "read") else None


def last_steps(call: Call, session: Session, task: Task, count: int) -> list[Step]:
    """The last steps of a task, in the order in which they were saved."""
    if not count:
        return []
    found = session.execute(LAST_STEPS, (task.columns.num, call.now_us, count))
    return [rows.step_in(row) for row in reversed(found)]


def active_goals(call: Call, session: Session, namespace: str | None, limit: int) -> list[Goal]:
    """The active goals in a namespace and below it, or in all; the most urgent first."""
    readable, params = readable_in(call, namespace)
    sql = ACTIVE_GOALS.format(readable=readable)
    return [rows.goal_in(row) for row in session.execute(sql, (call.now_us, *params, limit))]


def readable_in(call: Call, namespace: str | None) -> Condition:
    """What of a namespace and those below it, or of all, the caller may see; memories are m."""
    patterns = call.grants.within(namespace)
    if patterns is None:
        return ("TRUE", []) if namespace is None else namespace_condition(namespace, "m.namespace")
    if not patterns:
        call.refusals.append(Refusal("", namespace, "not readable"))
    return readable_condition(patterns, "m.namespace")


def goal_record(call: Call, goal: Goal) -> records.GoalRecord:
    """A goal as callers see it."""
    memory, columns = goal.memory, goal.columns
    return {
        "id": memory.id,
        "namespace": memory.namespace,
        "version": memory.version,
        "description": memory.content,
        "goal_status": columns.status,
        "priority": columns.priority,
        "progress": columns.progress,
        "due_at": to_iso_or_none(columns.due_us),
        "parent_goal_id": shown(call, goal.parent),
        "metadata": decode_json(memory.metadata),
        "tags": decode_json(memory.tags),
        "created_by": memory.created_by,
        "created_at": to_iso(memory.created_us),
        "updated_at": to_iso(memory.updated_us),
        "ended_at": to_iso_or_none(columns.ended_us),
    }


def task_record(call: Call, task: Task, workflow: Workflow) -> records.TaskRecord:
    """A task as callers see it."""
    memory, columns = task.memory, task.columns
    return {
        "task_id": task.task_id,
        "memory_id": memory.id,
        "namespace": memory.namespace,
        "version": memory.version,
        "description": columns.description,
        "goal_id": shown(call, task.goal),
        "task_type": columns.task_type,
        "task_status": columns.status,
        "phase": columns.phase,
        "phase_reason": columns.phase_reason,
        "next_phases": list(workflow.after(columns.phase)),
        "assigned_to": columns.assigned_to,
        "summary": columns.summary,
        "steps": columns.steps,
        "metadata": decode_json(memory.metadata),
        "tags": decode_json(memory.tags),
        "created_by": memory.created_by,
        "created_at": to_iso(memory.created_us),
        "updated_at": to_iso(memory.updated_us),
        "started_at": to_iso_or_none(columns.started_us),
        "ended_at": to_iso_or_none(columns.ended_us),
    }


def step_record(step: Step, task_id: str) -> records.StepRecord:
    """A step of a task as callers see it."""
    memory, columns = step.memory, step.columns
    return {
        "id": memory.id,
        "task_id": task_id,
        "iteration": columns.iteration,
        "tool_name": columns.tool_name,
        "parameters": decode_json(columns.parameters),
        "output": columns.output,
        "truncated": bool(columns.truncated),
        "success": bool(columns.success),
        "duration_ms": columns.duration_ms,
        "at": to_iso(memory.created_us),
        "author": memory.created_by,
    }


def shown(call: Call, served: Row) -> str | None:
    """The id of a goal that something serves, unless it is gone or hidden from the caller."""
    goal_id, namespace, expires_us = served
    if goal_id is None or (expires_us is not None and expires_us <= call.now_us):
        return None
    return str(goal_id) if call.grants.allows(namespace, "read") else None
