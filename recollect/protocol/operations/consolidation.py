"""Consolidation: finding what says the same or contradicts, settling it, and undoing that.

Also taking back what a source wrote: that too is a run that can be undone."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

RunId = Annotated[str, Meta(min_length=1, description="Id of the run.")]
Where = Annotated[str, Meta(min_length=1, description="This namespace and those below it.")]


@operation(access="read", http=("GET", "/v1/namespaces/{namespace}/conflicts"))
class FindConflicts(Operation[records.ConflictsFound], frozen=True):
    """Memories that nearly repeat one another, or contradict one another."""

    namespace: Where
    limit: fields.Limit = 50


class ConsolidateOptions(Operation[records.Consolidated], frozen=True, kw_only=True):
    limit: Annotated[
        int,
        Meta(ge=1, le=fields.RUN_ITEMS_MAX, description="How many conflicts to settle at most."),
    ] = 100


@operation(access="write", http=("POST", "/v1/namespaces/{namespace}/consolidate"))
class Consolidate(ConsolidateOptions, frozen=True):
    """Settle the conflicts of a namespace. What is given up is archived, never lost."""

    namespace: Where
    strategy: Annotated[
        Literal["keep_latest", "keep_most_trusted", "merge", "llm_based"],
        Meta(
            description="keep_latest; keep_most_trusted; merge, which joins what the memories say "
            "without a model; llm_based, which asks a chat model to."
        ),
    ] = "merge"
    dry_run: fields.DryRun = False


@operation(access="write", http=("POST", "/v1/runs/{run_id}/undo"))
class Undo(Operation[records.RunUndone], frozen=True):
    """Undo a run: what it archived or deleted is back, what it wrote is gone."""

    run_id: RunId


@operation(access="read", http=("GET", "/v1/runs/{run_id}"))
class GetRun(Operation[records.RunFetched], frozen=True):
    """A run with its report."""

    run_id: RunId


class ListRunsOptions(Operation[records.RunsListed], frozen=True, kw_only=True):
    limit: fields.Limit = 50
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/runs"))
class ListRuns(ListRunsOptions, frozen=True):
    """Runs, the latest first."""

    namespace: fields.NamespaceFilter = None
    kind: Annotated[str | None, Meta(description="Only runs of this kind.")] = None


class ForgetSourceOptions(Operation[records.SourceForgotten], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="write", http=("POST", "/v1/sources:forget"))
class ForgetSource(ForgetSourceOptions, frozen=True):
    """Take back all that a source wrote and all that was derived from it, as one run.

    A source is what memories name as such, the agent that wrote them, or the identity by whose
    key they were written, whatever agents it named."""

    source: Annotated[str, Meta(min_length=1, description="The source, the agent or the identity.")]
    dry_run: fields.DryRun = False
