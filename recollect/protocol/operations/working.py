"""Working memory: goals, tasks and their steps, and what agents know of themselves and others."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

GoalStatus = Annotated[
    Literal["active", "paused", "completed", "failed", "abandoned"],
    Meta(description="active, paused, completed, failed or abandoned."),
]
TaskStatus = Annotated[
    Literal["pending", "in_progress", "blocked", "completed", "failed", "cancelled"],
    Meta(description="pending, in_progress, blocked, completed, failed or cancelled."),
]
GoalId = Annotated[str, Meta(min_length=1, description="Id of the goal.")]
Priority = Annotated[float, Meta(ge=0, le=1, description="From 0 to 1; the highest comes first.")]
Progress = Annotated[float, Meta(ge=0, le=1, description="How far it is, from 0 to 1.")]
Description = Annotated[str, Meta(min_length=1, description="What is to be done.")]
Phase = Annotated[
    str,
    Meta(
        min_length=1,
        description="Phase of the workflow: backlog, requirements, design, implementation, "
        "testing, deployment, done or blocked, unless others are configured.",
    ),
]
TaskType = Annotated[
    str,
    Meta(
        pattern=fields.WORD,
        description="Kind of task, a word of yours in small letters, such as deploy or report.",
    ),
]


class StoreGoalOptions(Operation[records.GoalChanged], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    metadata: fields.Metadata = None
    tags: fields.Tags = None


@operation(access="write", http=("POST", "/v1/goals"))
class StoreGoal(StoreGoalOptions, frozen=True):
    """Set a goal."""

    description: Description
    priority: Priority = 0.5
    due_at: fields.Moment = None
    parent_goal_id: Annotated[str | None, Meta(description="The goal that it serves.")] = None


class UpdateGoalOptions(Operation[records.GoalChanged], frozen=True, kw_only=True):
    parent_goal_id: Annotated[
        str | UnsetType | None,
        Meta(description="The goal that it serves; null if it serves none any more."),
    ] = UNSET
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("PATCH", "/v1/goals/{goal_id}"))
class UpdateGoal(UpdateGoalOptions, frozen=True):
    """Change a goal: what is not given stays."""

    goal_id: GoalId
    status: GoalStatus | None = None
    progress: Progress | None = None
    description: Description | None = None
    priority: Priority | None = None
    due_at: Annotated[
        str | float | UnsetType | None, Meta(description="When it is due; null takes that away.")
    ] = UNSET


@operation(access="read", http=("GET", "/v1/goals/{goal_id}"))
class GetGoal(Operation[records.GoalFetched], frozen=True):
    """One goal, with how its tasks stand."""

    goal_id: GoalId


class ActiveGoalsOptions(Operation[records.GoalsListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="read", http=("GET", "/v1/goals:active"))
class ActiveGoals(ActiveGoalsOptions, frozen=True):
    """The goals that are active, the most urgent first: by priority, then by when they are due."""

    limit: fields.Limit = 20


class SaveTaskOptions(Operation[records.TaskSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    metadata: fields.Metadata = None
    tags: fields.Tags = None
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/tasks"))
class SaveTask(SaveTaskOptions, frozen=True):
    """Save a task, new or changed. What is not given of one that is there stays."""

    description: Description
    task_id: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="A name of your own, unique in the namespace; made if absent."),
    ] = None
    goal_id: Annotated[str | None, Meta(description="The goal that it serves.")] = None
    task_type: TaskType | None = None
    status: TaskStatus | None = None
    phase: Phase | None = None
    assigned_to: Annotated[str | None, Meta(description="The agent that does it.")] = None


class GetTaskOptions(Operation[records.TaskFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    steps: Annotated[
        int, Meta(ge=0, le=fields.INTEGER_MAX, description="How many of its last steps to show.")
    ] = 20


@operation(access="read", http=("GET", "/v1/tasks/{task_id}"))
class GetTask(GetTaskOptions, frozen=True):
    """One task with its last steps."""

    task_id: fields.TaskId


class UpdateTaskStatusOptions(Operation[records.TaskSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/tasks/{task_id}/status"))
class UpdateTaskStatus(UpdateTaskStatusOptions, frozen=True):
    """Move a task on. A summary of what came of it is recalled with later tasks."""

    task_id: fields.TaskId
    status: TaskStatus
    summary: Annotated[str, Meta(description="What was done and what came of it.")] = ""


class SetTaskPhaseOptions(Operation[records.TaskSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/tasks/{task_id}/phase"))
class SetTaskPhase(SetTaskPhaseOptions, frozen=True):
    """Move a task to another phase of its workflow, if the workflow allows that step."""

    task_id: fields.TaskId
    phase: Phase
    reason: Annotated[str, Meta(description="Why; kept with the task, and in its history.")] = ""


class TasksForGoalOptions(Operation[records.TasksListed], frozen=True, kw_only=True):
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/goals/{goal_id}/tasks"))
class TasksForGoal(TasksForGoalOptions, frozen=True):
    """The tasks of a goal, in the order in which they were saved."""

    goal_id: GoalId
    limit: fields.Limit = 50


class SaveStepOptions(Operation[records.StepSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="write", http=("POST", "/v1/tasks/{task_id}/steps"))
class SaveStep(SaveStepOptions, frozen=True):
    """Save a step of a task: the tool that was called, with what, and what came back."""

    task_id: fields.TaskId
    iteration: Annotated[int, Meta(ge=0, le=1_000_000_000, description="Which turn of the loop.")]
    tool_name: Annotated[str, Meta(min_length=1, description="The tool.")]
    parameters: Annotated[
        dict[str, Any] | None, Meta(description="What it was called with: any JSON object.")
    ] = None
    output: Annotated[
        Any, Meta(description="What came back: text, or any JSON. Cut after 20,000 characters.")
    ] = None
    success: Annotated[bool, Meta(description="Whether it did what it should.")] = True
    duration_ms: Annotated[float, Meta(ge=0, le=1e12, description="How long it took.")] = 0.0


class ListStepsOptions(Operation[records.StepsListed], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/tasks/{task_id}/steps"))
class ListSteps(ListStepsOptions, frozen=True):
    """The steps of a task, in their order."""

    task_id: fields.TaskId
    limit: fields.Limit = 50


AgentId = Annotated[str, Meta(min_length=1, description="The agent.")]
Name = Annotated[str, Meta(min_length=1, description="Its name, unique in the namespace.")]


class SaveAgentStateOptions(Operation[records.ValueSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("PUT", "/v1/agents/{agent_id}/state"))
class SaveAgentState(SaveAgentStateOptions, frozen=True):
    """Save where an agent is, so that it can go on from there after a restart."""

    agent_id: AgentId
    state: Annotated[dict[str, Any], Meta(description="Any JSON object.")]


class GetAgentStateOptions(Operation[records.AgentStateFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="read", http=("GET", "/v1/agents/{agent_id}/state"))
class GetAgentState(GetAgentStateOptions, frozen=True):
    """The state that an agent saved last."""

    agent_id: AgentId


class SavePreferenceOptions(Operation[records.ValueSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    confidence: Annotated[float, Meta(ge=0, le=1, description="From 0 to 1: how sure it is.")] = 1.0
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("PUT", "/v1/preferences/{key}"))
class SavePreference(SavePreferenceOptions, frozen=True):
    """Save what somebody prefers; it is recalled like any memory."""

    key: Name
    value: Annotated[Any, Meta(description="Any JSON value.")]


class GetPreferenceOptions(Operation[records.PreferenceFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="read", http=("GET", "/v1/preferences/{key}"))
class GetPreference(GetPreferenceOptions, frozen=True):
    """One preference."""

    key: Name


class ListPreferencesOptions(Operation[records.PreferencesListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/preferences"))
class ListPreferences(ListPreferencesOptions, frozen=True):
    """Preferences by their key."""

    prefix: Annotated[str | None, Meta(description="Only keys that begin with this.")] = None


class SavePersonaOptions(Operation[records.ValueSaved], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("PUT", "/v1/personas/{persona}"))
class SavePersona(SavePersonaOptions, frozen=True):
    """Save how a persona is: its traits, its mood, what it has committed to."""

    persona: Name
    state: Annotated[dict[str, Any], Meta(description="Any JSON object.")]


class GetPersonaOptions(Operation[records.PersonaFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="read", http=("GET", "/v1/personas/{persona}"))
class GetPersona(GetPersonaOptions, frozen=True):
    """How a persona is."""

    persona: Name


class RecentSummariesOptions(Operation[records.SummariesListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="read", http=("GET", "/v1/tasks:summaries"))
class RecentSummaries(RecentSummariesOptions, frozen=True):
    """What the last finished tasks came to, the newest first, within a number of tokens."""

    limit: fields.Limit = 3
    max_tokens: fields.MaxTokens = 2000
