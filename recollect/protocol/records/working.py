"""The shapes of working memory. Every one of these records is a memory; its id is that memory's."""

from __future__ import annotations

from typing import Any, TypedDict


class GoalRecord(TypedDict):
    """One goal."""

    id: str
    namespace: str
    version: int
    description: str
    goal_status: str
    priority: float
    progress: float
    due_at: str | None
    parent_goal_id: str | None
    metadata: dict[str, Any]
    tags: list[str]
    created_by: str | None
    created_at: str
    updated_at: str
    ended_at: str | None


class GoalChanged(TypedDict):
    status: str
    goal_id: str
    goal_status: str
    version: int
    seq: int
    updated_at: str


class GoalFetched(TypedDict):
    status: str
    goal: GoalRecord
    tasks: dict[str, int]
    """How many of its tasks are in each status."""


class GoalsListed(TypedDict):
    status: str
    goals: list[GoalRecord]
    count: int


class TaskRecord(TypedDict):
    """One task."""

    task_id: str
    memory_id: str
    namespace: str
    version: int
    description: str
    goal_id: str | None
    task_type: str
    task_status: str
    phase: str
    phase_reason: str
    """Why it is in that phase, if that was said."""
    next_phases: list[str]
    """Where the workflow allows it to go from there."""
    assigned_to: str | None
    summary: str
    steps: int
    metadata: dict[str, Any]
    tags: list[str]
    created_by: str | None
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None


class TaskSaved(TypedDict):
    status: str
    task_id: str
    memory_id: str
    created: bool
    task_status: str
    phase: str
    version: int
    seq: int
    updated_at: str


class StepRecord(TypedDict):
    """One step of a task."""

    id: str
    task_id: str
    iteration: int
    tool_name: str
    parameters: dict[str, Any]
    output: str
    truncated: bool
    success: bool
    duration_ms: float
    at: str
    author: str | None


class TaskFetched(TypedDict):
    status: str
    task: TaskRecord
    recent_steps: list[StepRecord]
    """The last ones, in their order."""


class TasksListed(TypedDict):
    status: str
    tasks: list[TaskRecord]
    count: int
    cursor: str | None


class StepSaved(TypedDict):
    status: str
    step_id: str
    task_id: str
    truncated: bool
    """Whether the output was longer than is kept."""
    seq: int
    at: str


class StepsListed(TypedDict):
    status: str
    steps: list[StepRecord]
    count: int
    cursor: str | None


class ValueSaved(TypedDict):
    """A value was saved under a name."""

    status: str
    memory_id: str
    namespace: str
    version: int
    seq: int
    created: bool
    """Whether there was none under that name."""
    updated_at: str


class AgentStateFetched(TypedDict):
    status: str
    agent_id: str
    state: dict[str, Any]
    version: int
    updated_at: str


class PreferenceRecord(TypedDict):
    """One preference."""

    namespace: str
    key: str
    value: Any
    confidence: float
    version: int
    updated_at: str
    updated_by: str | None


class PreferenceFetched(TypedDict):
    status: str
    preference: PreferenceRecord


class PreferencesListed(TypedDict):
    status: str
    preferences: list[PreferenceRecord]
    count: int
    cursor: str | None


class PersonaFetched(TypedDict):
    status: str
    persona: str
    state: dict[str, Any]
    version: int
    updated_at: str


class SummaryRecord(TypedDict):
    """What a finished task came to."""

    task_id: str
    namespace: str
    description: str
    task_status: str
    summary: str
    truncated: bool
    """Whether it was cut to fit."""
    tokens: int
    ended_at: str


class SummariesListed(TypedDict):
    status: str
    summaries: list[SummaryRecord]
    count: int
    tokens: int
    """Of all of them together; never more than was asked for."""
