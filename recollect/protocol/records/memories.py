"""The shapes of memories, their links and their groups."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class MemoryRecord(TypedDict):
    """One memory, whole."""

    id: str
    seq: int
    namespace: str
    key: str | None
    version: int
    collection: str
    memory_type: str
    memory_tier: str
    content: str
    value: Any
    metadata: dict[str, Any]
    tags: list[str]
    importance: float
    strength: float
    stability_s: float
    access_count: int
    last_accessed_at: str
    fades_at: str
    parent_id: str | None
    session_id: str | None
    created_by: str | None
    updated_by: str | None
    source: str | None
    trust: float
    valid_from: str | None
    valid_to: str | None
    created_at: str
    updated_at: str
    expires_at: str | None
    archived_at: str | None
    deleted_at: str | None


class FoundMemory(MemoryRecord):
    """A memory with how well it answers the query; higher is better. Of a search that names
    `fields`, it has its id, its score and those."""

    score: float
    explanation: NotRequired[dict[str, Any]]
    """How the score came about, if asked for."""
    neighbours: NotRequired[list[MemoryRecord]]
    """What stands around it in its session and its tree, if asked for."""
    also: NotRequired[list[str]]
    """Ids of memories that say the same, and are therefore not shown."""


ALWAYS_SHOWN = {FoundMemory.__name__: ("id", "score")}
"""What of a record is there whichever fields are asked for."""


class RelatedMemory(TypedDict):
    """A memory met on a walk along relationships."""

    memory: MemoryRecord
    relationship_type: str
    strength: float
    direction: str
    depth: int
    via: str


class MemoryAdded(TypedDict):
    status: str
    memory_id: str
    version: int
    seq: int
    created_at: str
    echo_of: NotRequired[str]
    """The memory that this only repeats: the agent was just served it, so nothing was stored, and
    the rest of the answer is about that memory."""


class MemoryFetched(TypedDict):
    status: str
    memory: MemoryRecord


class MemoryChanged(TypedDict):
    status: str
    memory_id: str
    version: int
    seq: int
    updated_at: str


class MemoryDeleted(TypedDict):
    status: str
    memory_id: str
    version: int
    seq: int
    deleted_ids: list[str]
    detached_ids: list[str]


class MemoryReinforced(TypedDict):
    status: str
    memory_id: str
    seq: int
    strength: float
    stability_s: float
    access_count: int
    fades_at: str


class MemoryPurged(TypedDict):
    status: str
    seq: int
    purged: int
    derived_ids: list[str]
    """Memories that were made from them and may repeat what they said, by a merge or as a
    `derived_from` relationship says; also archived and deleted ones. They are still there: purge
    them too, if that is meant. At most 1,000, of those that the caller may read."""
    wiped: bool
    """Whether nothing is left of them in any file; if not yet, it is being seen to, and `stats`
    tells when it is done."""


class MemoriesFound(TypedDict):
    status: str
    results: list[FoundMemory]
    count: int
    cursor: str | None
    degraded: NotRequired[str]
    """What could not be used for this answer, and why."""


class MemoriesListed(TypedDict):
    status: str
    memories: list[MemoryRecord]
    count: int
    cursor: str | None


class MemoriesCounted(TypedDict):
    status: str
    count: int


class MemoryVersion(TypedDict):
    """One version: what the memory was, by whom and when it was made so."""

    version: int
    operation: str
    changed_at: str
    changed_by: str | None
    memory: MemoryRecord


class MemoryHistory(TypedDict):
    status: str
    memory_id: str
    versions: list[MemoryVersion]
    count: int
    cursor: str | None


class BatchItem(TypedDict, total=False):
    """The answer for one item, in the place of the item: stored, found, or why not."""

    status: str
    memory_id: str
    version: int
    seq: int
    memory: MemoryRecord
    error: dict[str, Any]
    echo_of: str
    """As in MemoryAdded."""


class BatchAdded(TypedDict):
    status: str
    results: list[BatchItem]
    memory_ids: list[str | None]
    stored: int
    failed: int
    seq: int


class BatchFetched(TypedDict):
    status: str
    results: list[BatchItem]
    memories: list[MemoryRecord]
    missing_ids: list[str]
    count: int


class RelationshipAdded(TypedDict):
    status: str
    source_id: str
    target_id: str
    relationship_type: str
    strength: float
    seq: int


class RelatedFound(TypedDict):
    status: str
    related: list[RelatedMemory]
    count: int


class GroupCreated(TypedDict):
    status: str
    group_id: str
    name: str
    seq: int


class GroupJoined(TypedDict):
    status: str
    group_id: str
    memory_id: str
    seq: int
