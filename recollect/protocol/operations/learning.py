"""Learning: what was tried, what worked, and what to do the next time."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.operations.working import TaskType
from recollect.protocol.tool import Tool

PatternId = Annotated[str, Meta(min_length=1, description="Id of the pattern.")]


class StoreExecutionOptions(Operation[records.ExecutionStored], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    task_description: Annotated[
        str | None,
        Meta(description="What was to be done; that of the saved task if absent."),
    ] = None
    task_type: TaskType | None = None
    duration_ms: Annotated[
        Annotated[float, Meta(ge=0, le=1e12)] | None, Meta(description="How long it took.")
    ] = None
    metadata: fields.Metadata = None
    tags: fields.Tags = None


@operation(
    access="write",
    http=("POST", "/v1/memory/store"),
    mcp=Tool(
        when="Use it at the end of a task, whether it went well or not: patterns come from it.",
        example={
            "task_id": "upgrade-7",
            "execution_summary": "Dumped, upgraded, restored; 4 minutes.",
            "success": True,
            "task_type": "migration",
        },
    ),
)
class StoreExecution(StoreExecutionOptions, frozen=True):
    """Keep how a task went, to learn from it."""

    task_id: fields.TaskId
    execution_summary: Annotated[
        str, Meta(min_length=1, description="What was done, and what came of it.")
    ]
    success: Annotated[bool, Meta(description="Whether it reached what it should.")]
    error_patterns: Annotated[
        list[str] | None, Meta(description="What went wrong on the way, a line each.")
    ] = None
    auto_extract_patterns: Annotated[
        bool, Meta(description="Learn from it at once, with those like it.")
    ] = True


class SearchSimilarOptions(Operation[records.ExecutionsFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    task_type: Annotated[str | None, Meta(description="Only tasks of this type.")] = None


@operation(access="read", http=("POST", "/v1/memory/search"))
class SearchSimilar(SearchSimilarOptions, frozen=True):
    """How tasks like this one went before, the nearest first. What is shown counts as reused."""

    task_description: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    top_k: fields.Limit = 5
    similarity_threshold: Annotated[
        float,
        Meta(ge=-1, le=1, description="From -1 to 1: leave out what is less alike than this."),
    ] = 0.7
    success_only: Annotated[bool, Meta(description="Only those that went well.")] = False


class ExtractPatternOptions(Operation[records.PatternsExtracted], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    dry_run: Annotated[bool, Meta(description="Only say what would be learned.")] = False


@operation(access="write", http=("POST", "/v1/memory/patterns/extract"))
class ExtractPattern(ExtractPatternOptions, frozen=True):
    """Learn from like executions: what sets those that went well apart from those that did not."""

    task_type: Annotated[str | None, Meta(description="Only from tasks of this type.")] = None
    execution_ids: Annotated[list[str] | None, Meta(description="Only from these executions.")] = (
        None
    )


class SearchPatternsOptions(Operation[records.PatternsListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    min_confidence: Annotated[
        float, Meta(ge=0, le=1, description="Leave out what is less certain than this.")
    ] = 0.0


@operation(access="read", http=("GET", "/v1/memory/patterns"))
class SearchPatterns(SearchPatternsOptions, frozen=True):
    """What was learned, the most certain first."""

    task_type: Annotated[
        str | None, Meta(description="A regular expression that the type of task contains.")
    ] = None
    pattern_type: Annotated[
        Literal["success", "failure", "mixed"] | None,
        Meta(description="Only patterns of this type: success, failure or mixed."),
    ] = None
    limit: fields.Limit = 5


class FindPatternOptions(Operation[records.PatternFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    threshold: fields.LikenessMin = None


@operation(
    access="read",
    http=("POST", "/v1/memory/patterns/find"),
    mcp=Tool(
        when="Use it before a task of a kind that was done before: what worked, and what to avoid.",
        example={"trigger": "Upgrade the database of the shop"},
    ),
)
class FindPattern(FindPatternOptions, frozen=True):
    """The pattern that fits a task best, by likeness and by how far it has proved itself."""

    trigger: Annotated[str, Meta(min_length=1, description="What is to be done.")]


@operation(
    access="write",
    http=("POST", "/v1/memory/patterns/{pattern_id}/feedback"),
    mcp=Tool(
        when="Use it after a pattern from `find_pattern` was followed.",
        example={"pattern_id": "0198f2a3b4c5d6e7", "success": True},
    ),
)
class PatternFeedback(Operation[records.PatternRated], frozen=True):
    """Say whether a pattern helped: that moves how far it is trusted."""

    pattern_id: PatternId
    success: Annotated[bool, Meta(description="Whether it helped.")]


class TaskContextOptions(Operation[records.TaskContextFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    limit: fields.Limit = 10


@operation(access="read", http=("GET", "/v1/memory/tasks/{task_id}/context"))
class TaskContext(TaskContextOptions, frozen=True):
    """All that is known of a task: its goal, steps, decisions and executions, and what was
    learned from tasks like it."""

    task_id: fields.TaskId
