"""The shapes of assembled context."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ContextChunk(TypedDict):
    """One piece of a context, and where it comes from."""

    n: int
    """Its number in the text."""
    memory_id: str | None
    """None for what is not a memory: how things stand."""
    version: int | None
    tier: str
    collection: str
    namespace: str | None
    source: str | None
    author: str | None
    at: str
    trust: float
    score: float
    tokens: int
    truncated: bool
    text: str


class ContextAssembled(TypedDict):
    status: str
    context: str
    """What to put before the model."""
    chunks: list[ContextChunk]
    count: int
    tokens: int
    """Of the whole text; never more than `max_tokens`."""
    max_tokens: int
    tokenizer: str
    """How tokens were counted."""
    considered: int
    """How many memories were weighed."""
    receipt_id: str | None
    """None if nothing was given, or if it could not be stored."""
    note: NotRequired[str]
    """Why nothing was given."""
    degraded: NotRequired[str]


class ContextReplayed(TypedDict):
    status: str
    receipt_id: str
    context: str
    chunks: list[ContextChunk]
    count: int
    tokens: int
    max_tokens: int
    tokenizer: str
    task_description: str
    assembled_at: str
    assembled_for: str
    """Who asked for it."""
    complete: bool
    """Whether all that was given is still there for the asker to see."""
    missing: list[str]
    """Ids of what is not: purged since, or not theirs to see."""
