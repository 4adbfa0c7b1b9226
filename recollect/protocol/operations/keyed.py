"""Memories reached by namespace and key: the same memories, by a name of the caller's."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

Namespace = Annotated[str, Meta(min_length=1, description="The namespace that it is in.")]
Key = Annotated[str, Meta(min_length=1, description="Its name there.")]
Prefix = Annotated[
    str, Meta(min_length=1, description="This namespace and those below it: user, user:alice, …")
]


class PutOptions(Operation[records.MemoryPut], frozen=True, kw_only=True):
    content: Annotated[
        str | None,
        Meta(description="The text to find it by; made from the value if absent."),
    ] = None
    memory_tier: fields.MemoryTier | UnsetType = UNSET
    importance: fields.Importance | UnsetType = UNSET
    tags: Annotated[list[str] | UnsetType | None, Meta(description="Labels to filter by.")] = UNSET
    source: Annotated[str | UnsetType | None, Meta(description="Where it comes from.")] = UNSET
    trust: fields.Trust | UnsetType = UNSET
    expires_at: Annotated[
        str | float | UnsetType | None,
        Meta(description="ISO 8601 text, or seconds since 1970; null for never."),
    ] = UNSET
    expected_version: Annotated[
        Annotated[int, Meta(ge=0, le=fields.INTEGER_MAX)] | None,
        Meta(description="Refuse unless this is the present version; 0 if the key must be free."),
    ] = None


@operation(access="write", http=("PUT", "/v1/namespaces/{namespace}/keys/{key}"))
class Put(PutOptions, frozen=True):
    """Store a value under a key: a new memory, or the next version of the one that has the key.

    Value, content, type and metadata are replaced. Tier, importance, tags, source, trust and
    expiry stay as they are unless they are given; a new memory begins with the medium tier,
    importance 0.5, no tags and trust 1."""

    namespace: Namespace
    key: Key
    value: Annotated[Any, Meta(description="Any JSON value.")]
    memory_type: fields.MemoryType = "semantic"
    metadata: fields.Metadata = None


class GetByKeyOptions(Operation[records.MemoryFetched], frozen=True, kw_only=True):
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/namespaces/{namespace}/keys/{key}"))
class GetByKey(GetByKeyOptions, frozen=True):
    """Read what a key holds: as it is, or as it was at a time, whichever memory held it then.

    A given version is one of what the key holds, or held last."""

    namespace: Namespace
    key: Key
    version: Annotated[fields.Version | None, Meta(description="This version, not the latest.")] = (
        None
    )
    as_of: fields.AsOf = None


class UpdateByKeyOptions(Operation[records.MemoryChanged], frozen=True, kw_only=True):
    metadata: Annotated[
        dict[str, Any] | UnsetType | None, Meta(description="Replaces the metadata.")
    ] = UNSET
    content: Annotated[
        str | UnsetType, Meta(description="The text to find it by; made from the value if absent.")
    ] = UNSET
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("PATCH", "/v1/namespaces/{namespace}/keys/{key}"))
class UpdateByKey(UpdateByKeyOptions, frozen=True):
    """Change what a key holds; unlike put, the key must be there.

    A new value brings its own content unless one is given."""

    namespace: Namespace
    key: Key
    value: Annotated[Any, Meta(description="The new value; it stays as it is if absent.")] = UNSET


class DeleteByKeyOptions(Operation[records.MemoryDeleted], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("DELETE", "/v1/namespaces/{namespace}/keys/{key}"))
class DeleteByKey(DeleteByKeyOptions, frozen=True):
    """Delete what a key holds with the tree below it, restorably; the key is free again."""

    namespace: Namespace
    key: Key


@operation(access="read", http=("GET", "/v1/namespaces/{namespace}/keys/{key}/history"))
class HistoryByKey(Operation[records.MemoryHistory], frozen=True):
    """All versions of what a key holds or last held, the newest first."""

    namespace: Namespace
    key: Key
    limit: fields.Limit = 50
    cursor: fields.Cursor = None


class RestoreByKeyOptions(Operation[records.MemoryChanged], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/namespaces/{namespace}/keys/{key}/restore"))
class RestoreByKey(RestoreByKeyOptions, frozen=True):
    """Bring back what was deleted last under a key, or make an old version the newest one.

    A key that another memory has by now is refused."""

    namespace: Namespace
    key: Key
    version: Annotated[
        fields.Version | None, Meta(description="The version to bring back; the last if absent.")
    ] = None


@operation(access="read", http=("GET", "/v1/namespaces/{namespace}/keys/{key}/diff"))
class Diff(Operation[records.MemoryDiff], frozen=True):
    """What changed between two versions of what a key holds or last held."""

    namespace: Namespace
    key: Key
    from_version: Annotated[fields.Version, Meta(description="The version to compare.")]
    to_version: Annotated[
        fields.Version | None, Meta(description="What to compare it with; the latest if absent.")
    ] = None


class SearchNamespaceOptions(Operation[records.MemoriesListed], frozen=True, kw_only=True):
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/namespaces/{prefix}/memories"))
class SearchNamespace(SearchNamespaceOptions, frozen=True):
    """The memories of a namespace and those below it, namespace by namespace, oldest first."""

    prefix: Prefix
    memory_type: fields.MemoryTypeFilter = None
    limit: fields.Limit = 50


class ListNamespacesOptions(Operation[records.NamespacesListed], frozen=True, kw_only=True):
    limit: fields.Limit = 100
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/namespaces"))
class ListNamespaces(ListNamespacesOptions, frozen=True):
    """The namespaces that hold memories, in their order.

    A page may be shorter than the limit and still have a cursor that leads on."""

    prefix: Annotated[
        str | None, Meta(description="Only this namespace and those below it; all if absent.")
    ] = None


@operation(access="admin", http=("POST", "/v1/memories:squash"), replay=False)
class SquashVersions(Operation[records.VersionsSquashed], frozen=True):
    """Forget old versions of memories that have newer ones; the latest is never touched.

    It covers the namespace and those below it. One call forgets a bounded number."""

    namespace: fields.Namespace
    older_than_days: Annotated[
        float, Meta(ge=0, le=36_500, description="Only versions that were superseded before that.")
    ] = 90.0
    memory_type: Annotated[str, Meta(description="Only of memories of this type.")] = "episodic"
    dry_run: Annotated[bool, Meta(description="Only count.")] = False
