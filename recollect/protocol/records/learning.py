"""The shapes of learning."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from recollect.protocol.records.decisions import DecisionRecord
from recollect.protocol.records.working import GoalRecord, StepRecord, TaskRecord


class ExecutionRecord(TypedDict):
    """How a task went."""

    id: str
    namespace: str
    task_id: str
    task_type: str
    task_description: str
    execution_summary: str
    success: bool
    error_patterns: list[str]
    duration_ms: float | None
    reuse_count: int
    """How often it was shown to somebody with a like task."""
    metadata: dict[str, Any]
    tags: list[str]
    created_by: str | None
    created_at: str
    similarity: NotRequired[float]


class PatternRecord(TypedDict):
    """What was learned from like executions."""

    id: str
    namespace: str
    version: int
    pattern_type: str
    """success, failure or mixed: what it was learned from."""
    task_type: str
    trigger: str
    """The tasks that it is for."""
    summary: str
    success_indicators: list[str]
    """What those that went well have and the others have not."""
    failure_indicators: list[str]
    recommended_context: list[str]
    """What to have in view or to do the next time."""
    confidence: float
    """The mean of a Beta posterior over its evidence."""
    successes: float
    failures: float
    """The evidence: executions that it was learned from, and feedback."""
    usage_count: int
    executions: list[str]
    """Ids of executions that it was learned from."""
    created_at: str
    updated_at: str
    similarity: NotRequired[float]


class ExecutionStored(TypedDict):
    status: str
    execution_id: str
    seq: int
    created_at: str
    patterns: list[str]
    """Ids of patterns that were learned or confirmed by it."""


class ExecutionsFound(TypedDict):
    status: str
    results: list[ExecutionRecord]
    count: int


class PatternsExtracted(TypedDict):
    status: str
    patterns: list[PatternRecord]
    created: int
    updated: int
    """How many were there before; those that say what they said count as neither."""
    examined: int
    """How many executions were looked at."""


class PatternsListed(TypedDict):
    status: str
    patterns: list[PatternRecord]
    count: int


class PatternFound(TypedDict):
    status: str
    pattern: PatternRecord | None
    """None if nothing that was learned fits."""


class PatternRated(TypedDict):
    status: str
    pattern_id: str
    confidence: float
    successes: float
    failures: float
    usage_count: int
    version: int
    seq: int


class TaskContextFetched(TypedDict):
    status: str
    task_id: str
    task: TaskRecord | None
    """None if the task was never saved; the rest may be there all the same."""
    goal: GoalRecord | None
    steps: list[StepRecord]
    decisions: list[DecisionRecord]
    executions: list[ExecutionRecord]
    similar: list[ExecutionRecord]
    patterns: list[PatternRecord]
    degraded: NotRequired[str]
    """Why nothing was looked for by meaning, if so."""
