"""The shapes of decisions."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class DecisionRecord(TypedDict):
    """One decision: who, what, why, and what came of it."""

    id: str
    namespace: str
    version: int
    context: str
    options: list[str]
    choice: str
    reasoning: str
    confidence: float
    goal_id: str | None
    task_id: str | None
    receipt_id: str | None
    decided_by: str | None
    decided_at: str
    outcome: str | None
    success: bool | None
    outcome_at: str | None
    outcome_by: str | None
    metadata: dict[str, Any]
    tags: list[str]
    similarity: NotRequired[float]
    """How near it is to the situation that was asked about."""


class DecisionLogged(TypedDict):
    status: str
    decision_id: str
    version: int
    seq: int
    created_at: str


class OutcomeRecorded(TypedDict):
    status: str
    decision_id: str
    version: int
    seq: int
    updated_at: str


class DecisionFetched(TypedDict):
    status: str
    decision: DecisionRecord


class DecisionsFound(TypedDict):
    status: str
    decisions: list[DecisionRecord]
    count: int


class DecisionsListed(TypedDict):
    status: str
    decisions: list[DecisionRecord]
    count: int
    cursor: str | None
