"""Decisions: who chose what, among what, why, and what came of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool

DecisionId = Annotated[str, Meta(min_length=1, description="Id of the decision.")]


class LogDecisionOptions(Operation[records.DecisionLogged], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    receipt_id: Annotated[
        str | None, Meta(description="The receipt of the context that it was made with.")
    ] = None
    metadata: fields.Metadata = None
    tags: fields.Tags = None


@operation(
    access="write",
    http=("POST", "/v1/decisions"),
    mcp=Tool(
        when="Use it when you choose between ways that differ; keep the `decision_id` for "
        "`record_outcome`.",
        example={
            "context": "Where to keep sessions",
            "options": ["Redis", "SQLite"],
            "choice": "SQLite",
            "reasoning": "They must survive a restart.",
            "confidence": 0.8,
        },
    ),
)
class LogDecision(LogDecisionOptions, frozen=True):
    """Keep a decision with its reasons, to be found when the next one like it is made."""

    context: Annotated[str, Meta(min_length=1, description="What had to be decided.")]
    options: Annotated[list[str], Meta(description="What could have been chosen.")]
    choice: Annotated[str, Meta(min_length=1, description="What was chosen, of these or another.")]
    reasoning: Annotated[str, Meta(description="Why.")] = ""
    confidence: Annotated[
        float, Meta(ge=0, le=1, description="From 0 to 1: how sure the choice was.")
    ] = 0.5
    goal_id: Annotated[str | None, Meta(description="The goal that it serves.")] = None
    task_id: Annotated[
        str | None, Meta(description="The task that it was made for; the call's own if absent.")
    ] = None


@operation(
    access="write",
    http=("POST", "/v1/decisions/{decision_id}/outcome"),
    mcp=Tool(
        when="Use it once it shows whether a logged decision was right.",
        example={
            "decision_id": "0198f2a3b4c5d6e7",
            "outcome": "No session was lost in a month.",
            "success": True,
        },
    ),
)
class RecordOutcome(Operation[records.OutcomeRecorded], frozen=True):
    """Say what came of a decision; what was said before stays in its history."""

    decision_id: DecisionId
    outcome: Annotated[str, Meta(min_length=1, description="What came of it.")]
    success: Annotated[
        bool | None, Meta(description="Whether it was right; null if that is not known.")
    ] = None


@operation(access="read", http=("GET", "/v1/decisions/{decision_id}"))
class GetDecision(Operation[records.DecisionFetched], frozen=True):
    """One decision, whole."""

    decision_id: DecisionId


class FindSimilarDecisionsOptions(Operation[records.DecisionsFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    threshold: fields.LikenessMin = None
    with_outcome: Annotated[bool, Meta(description="Only those of which the outcome is known.")] = (
        False
    )


@operation(
    access="read",
    http=("POST", "/v1/decisions:similar"),
    mcp=Tool(
        when="Use it before you decide: what was chosen in a like case, and did it work?",
        example={"context": "Where to keep the job queue", "k": 3},
    ),
)
class FindSimilarDecisions(FindSimilarDecisionsOptions, frozen=True):
    """Decisions that were made in a like situation, the nearest first, with what came of them."""

    context: Annotated[str, Meta(min_length=1, description="What has to be decided now.")]
    k: fields.Limit = 5


class ListDecisionsOptions(Operation[records.DecisionsListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/decisions"))
class ListDecisions(ListDecisionsOptions, frozen=True):
    """Decisions, the newest first: all, or those of a task or a goal."""

    task_id: Annotated[str | None, Meta(description="Only those made for this task.")] = None
    goal_id: Annotated[str | None, Meta(description="Only those that serve this goal.")] = None
