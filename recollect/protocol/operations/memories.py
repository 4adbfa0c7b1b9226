"""Storing, reading and changing single memories."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool


class AddMemoryOptions(Operation[records.MemoryAdded], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    key: fields.Key = None
    value: fields.Value = None
    source: Annotated[str | None, Meta(description="Where it comes from.")] = None
    trust: fields.Trust = 1.0
    expires_at: fields.Moment = None
    valid_from: fields.Moment = None
    valid_to: fields.Moment = None


@operation(
    access="write",
    http=("POST", "/v1/memories"),
    mcp=(
        Tool(
            when="Use it to store a fact or an event for later when type, tier, key, source or "
            "validity matter; `remember` is shorter.",
            example={
                "content": "The build runs on Debian 12.",
                "memory_type": "semantic",
                "memory_tier": "long",
                "source": "ci.log",
                "tags": ["build"],
            },
        ),
        Tool(
            name="remember",
            when="Use it whenever something is worth knowing in a later conversation: a "
            "preference, a fact, a result. One thing at a time, in a sentence that can be "
            "understood alone.",
            fields=("content", "importance", "tags", "namespace"),
            example={
                "content": "Alice prefers answers in French.",
                "importance": 0.8,
                "namespace": "user:alice",
            },
        ),
    ),
)
class AddMemory(AddMemoryOptions, frozen=True):
    """Store one memory and make it searchable."""

    content: fields.Content
    memory_type: fields.MemoryType = "general"
    memory_tier: fields.MemoryTier = "short"
    importance: fields.Importance = 0.5
    metadata: fields.Metadata = None
    tags: fields.Tags = None
    parent_id: fields.ParentId = None


class GetMemoryOptions(Operation[records.MemoryFetched], frozen=True, kw_only=True):
    as_of: fields.AsOf = None
    version: Annotated[fields.Version | None, Meta(description="This version, not the latest.")] = (
        None
    )
    min_seq: fields.MinSeq = None
    include_deleted: Annotated[bool, Meta(description="Also a memory that was deleted.")] = False


@operation(
    access="read",
    http=("GET", "/v1/memories/{memory_id}"),
    mcp=Tool(
        when="Use it when the id is known from another answer: to see all of a memory, or what it "
        "said before.",
        example={"memory_id": "0198f2a3b4c5d6e7"},
    ),
)
class GetMemory(GetMemoryOptions, frozen=True):
    """Read one memory: as it is, as it was at a time, or in a given version."""

    memory_id: fields.MemoryId


class UpdateMemoryOptions(Operation[records.MemoryChanged], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(
    access="write",
    http=("PATCH", "/v1/memories/{memory_id}"),
    http_body="update_payload",
    mcp=Tool(
        when="Use it when something known has changed, rather than storing it a second time.",
        example={
            "memory_id": "0198f2a3b4c5d6e7",
            "update_payload": {
                "content": "The build runs on Debian 13.",
                "metadata_patch": {"checked": True},
            },
        },
    ),
)
class UpdateMemory(UpdateMemoryOptions, frozen=True):
    """Change a memory; the change is a new version and the old one stays in its history."""

    memory_id: fields.MemoryId
    update_payload: Annotated[
        dict[str, Any],
        Meta(
            description="The fields to change: content, memory_type, memory_tier, importance, "
            "metadata (replaces it), metadata_patch (merges; null removes a key), tags, value, "
            "parent_id, source, trust, expires_at, valid_from, valid_to."
        ),
    ]


class DeleteMemoryOptions(Operation[records.MemoryDeleted], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(
    access="write",
    http=("DELETE", "/v1/memories/{memory_id}"),
    mcp=Tool(
        when="Use it when a memory is wrong or is to be forgotten. Ask the user first if in doubt.",
        example={"memory_id": "0198f2a3b4c5d6e7"},
    ),
)
class DeleteMemory(DeleteMemoryOptions, frozen=True):
    """Delete a memory, restorably: with its whole tree, or leaving its children as roots."""

    memory_id: fields.MemoryId
    cascade: Annotated[bool, Meta(description="Take the whole tree below it as well.")] = True


class RestoreOptions(Operation[records.MemoryChanged], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/memories/{memory_id}/restore"))
class Restore(RestoreOptions, frozen=True):
    """Bring back a deleted memory, or make an old version the newest one."""

    memory_id: fields.MemoryId
    version: Annotated[
        fields.Version | None, Meta(description="The version to bring back; the last if absent.")
    ] = None


class HistoryOptions(Operation[records.MemoryHistory], frozen=True, kw_only=True):
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/memories/{memory_id}/history"))
class History(HistoryOptions, frozen=True):
    """All versions of a memory, the newest first, also of a deleted one."""

    memory_id: fields.MemoryId
    limit: fields.Limit = 50


@operation(access="admin", http=("POST", "/v1/memories/{memory_id}/purge"))
class Purge(Operation[records.MemoryPurged], frozen=True):
    """Erase a memory for good with its versions, vector and links; this cannot be undone.

    Nobody finds or reads it from then on. That nothing is left of it in the files of the store
    either, `wiped` tells; and what was made from it and stays, `derived_ids`.
    """

    memory_id: fields.MemoryId
    cascade: Annotated[bool, Meta(description="Erase the whole tree below it as well.")] = False


@operation(access="write", http=("POST", "/v1/memories/{memory_id}/reinforce"))
class ReinforceMemory(Operation[records.MemoryReinforced], frozen=True):
    """Make a memory fade more slowly, because it proved useful."""

    memory_id: fields.MemoryId
    reinforcement_factor: Annotated[
        float, Meta(gt=0, le=100, description="Factor on its stability; above 1 strengthens.")
    ] = 1.2


class GetChildrenOptions(Operation[records.MemoriesListed], frozen=True, kw_only=True):
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/memories/{parent_id}/children"))
class GetChildren(GetChildrenOptions, frozen=True):
    """The direct children of a memory, in order."""

    parent_id: fields.MemoryId
    limit: fields.Limit = 50
    sort_field: Annotated[
        Literal["created_at", "updated_at", "importance"], Meta(description="What to sort by.")
    ] = "created_at"
    sort_order: Annotated[
        Literal["asc", "desc"], Meta(description="Smallest or largest first.")
    ] = "desc"


@operation(access="read", http=("GET", "/v1/memories"))
class ListMemories(Operation[records.MemoriesListed], frozen=True, kw_only=True):
    """Memories, the newest first, page by page."""

    namespace: fields.NamespaceFilter = None
    memory_type: fields.MemoryTypeFilter = None
    filters: fields.Filters = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None
    include_deleted: Annotated[
        bool, Meta(description="Also those that were deleted, expired or archived.")
    ] = False
    include_archived: Annotated[bool, Meta(description="Also those that were archived.")] = False


@operation(access="read", http=("GET", "/v1/memories:count"))
class Count(Operation[records.MemoriesCounted], frozen=True, kw_only=True):
    """How many memories there are, of all or of those that fit."""

    namespace: fields.NamespaceFilter = None
    memory_type: fields.MemoryTypeFilter = None
    filters: fields.Filters = None
    min_seq: fields.MinSeq = None
    include_deleted: Annotated[
        bool, Meta(description="Also those that were deleted, expired or archived.")
    ] = False
    include_archived: Annotated[bool, Meta(description="Also those that were archived.")] = False
