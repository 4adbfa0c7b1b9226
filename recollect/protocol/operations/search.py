"""Finding memories by words and by meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


class SearchMemoryOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    filters: fields.Filters = None
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/memories:search"), mcp=True)
class SearchMemory(SearchMemoryOptions, frozen=True):
    """Find memories by their words, the best match first."""

    query: fields.Query
    memory_type: fields.MemoryTypeFilter = None
    limit: fields.Limit = 10
    parent_id: Annotated[str | None, Meta(description="Only children of this memory.")] = None


class SemanticSearchOptions(Operation[records.MemoriesFound], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("POST", "/v1/memories:semantic-search"), mcp=True)
class SemanticSearch(SemanticSearchOptions, frozen=True):
    """Find memories by their meaning, the nearest first."""

    query: fields.Query
    k: fields.Limit = 5
    filters: fields.Filters = None
