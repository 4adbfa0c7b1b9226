"""Finding memories by words, by meaning, and by both with all that is known of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields as kinds
from recollect.protocol.tool import FOR_PROGRAMS, Tool


class SearchMemoryOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: kinds.NamespaceFilter = None
    filters: kinds.Filters = None
    collections: kinds.Collections = None
    threshold: kinds.Threshold = None
    as_of: kinds.SearchAsOf = None
    cursor: kinds.Cursor = None
    min_seq: kinds.MinSeq = None
    explain: kinds.Explain = False
    fields: kinds.ShownFields = None


@operation(
    access="read",
    http=("GET", "/v1/memories:search"),
    mcp=Tool(
        name="search_memories",
        when='Use it for exact words: names, identifiers, error messages, "quoted phrases". For a '
        "question in words of its own, `recall` finds more.",
        example={"query": "ECONNRESET deploy", "limit": 5},
    ),
)
class SearchMemory(SearchMemoryOptions, frozen=True):
    """Find memories by their words, the best match first."""

    query: kinds.Query
    memory_type: kinds.MemoryTypeFilter = None
    limit: kinds.Limit = 10
    parent_id: Annotated[str | None, Meta(description="Only children of this memory.")] = None


class SemanticSearchOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: kinds.NamespaceFilter = None
    collections: kinds.Collections = None
    threshold: kinds.Threshold = None
    as_of: kinds.SearchAsOf = None
    cursor: kinds.Cursor = None
    min_seq: kinds.MinSeq = None
    explain: kinds.Explain = False
    fields: kinds.ShownFields = None
    vector: Annotated[
        list[float] | bytes | None,
        Meta(
            description="The query as a vector of the store's own model, instead of its text: its "
            "numbers, or bytes that are the same as 32-bit floats, little end first."
        ),
    ] = None


@operation(access="read", http=("POST", "/v1/memories:semantic-search"))
class SemanticSearch(SemanticSearchOptions, frozen=True):
    """Find memories by their meaning, the nearest first."""

    query: kinds.Query
    k: kinds.Limit = 5
    filters: kinds.Filters = None


class RecallOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: kinds.NamespaceFilter = None
    memory_type: kinds.MemoryTypeFilter = None
    collections: kinds.Collections = None
    threshold: kinds.Threshold = None
    as_of: kinds.SearchAsOf = None
    cursor: kinds.Cursor = None
    min_seq: kinds.MinSeq = None
    explain: kinds.Explain = False
    fields: kinds.ShownFields = None
    collapse: Annotated[
        bool,
        Meta(description="Of memories that say the same, show only the best.", extra=FOR_PROGRAMS),
    ] = True
    diversity: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="From 0 to 1: prefer what differs from the results before.",
            extra=FOR_PROGRAMS,
        ),
    ] = 0.0
    neighbours: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="Show with each result this many memories of its session before and "
            "after it, its parent, and as many of its siblings.",
            extra=FOR_PROGRAMS,
        ),
    ] = 0


@operation(
    access="read",
    http=("POST", "/v1/memories:recall"),
    mcp=Tool(
        when="Use it before answering whenever something may be known from earlier: about the "
        "user, the project, past work.",
        example={"query": "Which language does Alice want answers in?", "k": 5},
    ),
)
class Recall(RecallOptions, frozen=True):
    """Find what helps with a question: by words and by meaning, weighed with who said it, when,
    in which conversation, how important it is and how fresh."""

    query: kinds.Query
    k: kinds.Limit = 10
    filters: kinds.Filters = None
