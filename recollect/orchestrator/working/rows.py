"""Goals, tasks and steps as they lie in their tables, each with the row of its memory."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.memories.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Row

MEMORY_COLUMNS = len(MemoryRow.__struct_fields__)
ALIVE = "m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)"


class GoalColumns(msgspec.Struct, frozen=True):
    """One row of `goals`; what the goal is stands in its memory."""

    num: int
    status: str
    priority: float
    progress: float
    due_us: int | None
    parent_num: int | None
    ended_us: int | None


class TaskColumns(msgspec.Struct, frozen=True):
    """One row of `tasks`."""

    num: int
    goal_num: int | None
    task_type: str
    status: str
    phase: str
    phase_reason: str
    assigned_to: str | None
    description: str
    summary: str
    steps: int
    started_us: int | None
    ended_us: int | None


class StepColumns(msgspec.Struct, frozen=True):
    """One row of `steps`."""

    num: int
    task_num: int
    iteration: int
    tool_name: str
    parameters: str
    output: str
    truncated: int
    success: int
    duration_ms: float


class Goal(msgspec.Struct, frozen=True):
    """A goal, with the memory of the goal that it serves."""

    memory: MemoryRow
    columns: GoalColumns
    parent: Row
    """Its id, namespace and end; None each if there is none."""


class Task(msgspec.Struct, frozen=True):
    """A task, with the memory of the goal that it serves."""

    memory: MemoryRow
    columns: TaskColumns
    goal: Row

    @property
    def task_id(self) -> str:
        """The name that it has in its namespace."""
        return name_of(self.memory)


class Step(msgspec.Struct, frozen=True):
    """A step of a task."""

    memory: MemoryRow
    columns: StepColumns


def _prefixed(letter: str, columns: tuple[str, ...]) -> str:
    return ", ".join(f"{letter}.{name}" for name in columns)


# What was purged is in no row any more, and what was deleted is as absent.
SERVED = "LEFT JOIN memories s ON s.num = {num} AND s.deleted_us IS NULL"
SERVED_COLUMNS = "s.id, s.namespace, s.expires_us"
_GOAL = f"{JOINED_COLUMNS}, {_prefixed('g', GoalColumns.__struct_fields__)}, {SERVED_COLUMNS}"
_SERVED_BY_GOAL = SERVED.format(num="g.parent_num")
GOALS = f"SELECT {_GOAL} FROM goals g JOIN memories m ON m.num = g.num {_SERVED_BY_GOAL}"
GOALS_IN_ORDER = f"""
SELECT {_GOAL} FROM goals g CROSS JOIN memories m {_SERVED_BY_GOAL} WHERE m.num = g.num
"""
"""The same, with goals looked at one after the other in the order of an index of theirs."""
TASKS = f"""
SELECT {JOINED_COLUMNS}, {_prefixed("t", TaskColumns.__struct_fields__)}, {SERVED_COLUMNS}
FROM tasks t JOIN memories m ON m.num = t.num {SERVED.format(num="t.goal_num")}
"""
STEPS = f"""
SELECT {JOINED_COLUMNS}, {_prefixed("p", StepColumns.__struct_fields__)}
FROM steps p JOIN memories m ON m.num = p.num
"""
INSERT_GOAL = Insert("goals", GoalColumns.__struct_fields__)
INSERT_TASK = Insert("tasks", TaskColumns.__struct_fields__)
INSERT_STEP = Insert("steps", StepColumns.__struct_fields__)


def _update(table: str, columns: tuple[str, ...]) -> str:
    return f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE num = ?"


UPDATE_GOAL = _update("goals", GoalColumns.__struct_fields__[1:])
UPDATE_TASK = _update("tasks", TaskColumns.__struct_fields__[1:])


def update_params(columns: GoalColumns | TaskColumns) -> tuple[object, ...]:
    """The parameters of an update: everything, and the number last."""
    num, *rest = msgspec.structs.astuple(columns)
    return (*rest, num)


def goal_in(row: Row) -> Goal:
    """The goal in a row of `GOALS`."""
    return Goal(
        MemoryRow(*row[:MEMORY_COLUMNS]), GoalColumns(*row[MEMORY_COLUMNS:-3]), tuple(row[-3:])
    )


def task_in(row: Row) -> Task:
    """The task in a row of `TASKS`."""
    return Task(
        MemoryRow(*row[:MEMORY_COLUMNS]), TaskColumns(*row[MEMORY_COLUMNS:-3]), tuple(row[-3:])
    )


def step_in(row: Row) -> Step:
    """The step in a row of `STEPS`."""
    return Step(MemoryRow(*row[:MEMORY_COLUMNS]), StepColumns(*row[MEMORY_COLUMNS:]))


def name_of(memory: MemoryRow) -> str:
    """What a memory is called in its collection: its key without what stands before it."""
    assert memory.key is not None
    return memory.key.partition("/")[2]
