"""The records of the export format, as an import takes them: one struct a kind.

docs/export-format.md says what they mean. What is not allowed here is refused before anything is
written; what they may say within that, limits and secrets, is checked in `checking.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from recollect.orchestrator.exchange.tables import Count, Id, Moment, Real
from recollect.protocol.operations.fields import Importance, MemoryTier, MemoryType, Trust, Version
from recollect.protocol.operations.sessions import Status

Name = Annotated[str, Meta(min_length=1)]
Object = dict[str, Any]


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """One record."""


class Versioned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a version of a memory says."""

    version: Version
    memory_type: MemoryType
    tier: MemoryTier
    content: str
    value: Any = UNSET
    metadata: Object = {}
    tags: list[str] = []
    importance: Importance
    parent_id: Id | None = None
    updated_by: str | None = None
    source: str | None = None
    trust: Trust
    valid_from_us: Moment | None = None
    valid_to_us: Moment | None = None
    updated_us: Moment
    expires_us: Moment | None = None
    archived_us: Moment | None = None
    deleted_us: Moment | None = None
    operation: Name
    columns: Object | None = None


class EarlierVersion(Versioned, frozen=True, kw_only=True):
    """A version that is no more, and until when it was."""

    superseded_us: Moment


class MemoryLine(Versioned, frozen=True, kw_only=True, tag_field="kind", tag="memory"):
    """A memory in its present version, with earlier ones."""

    id: Id
    namespace: str
    collection: str
    key: str | None = None
    stability_s: Annotated[float, Meta(gt=0, le=1e12)]
    access_count: Count
    last_access_us: Moment
    fades_us: Moment
    session_id: Name | None = None
    created_by: str | None = None
    created_us: Moment
    versions: list[EarlierVersion] = []


class VersionsLine(Line, frozen=True, kw_only=True, tag="versions"):
    """More earlier versions of a memory whose history is long."""

    memory_id: Id
    versions: list[EarlierVersion]


class RelationshipLine(Line, frozen=True, kw_only=True, tag="relationship"):
    source_id: Id
    relationship_type: Name
    target_id: Id
    strength: Real
    created_us: Moment
    created_by: str | None = None


class EvidenceLine(Line, frozen=True, kw_only=True, tag="evidence"):
    """A pattern and an execution that it was learned from."""

    pattern_id: Id
    execution_id: Id


class GroupLine(Line, frozen=True, kw_only=True, tag="group"):
    id: Id
    namespace: str
    name: Name
    description: str | None = None
    created_us: Moment
    created_by: str | None = None


class MembersLine(Line, frozen=True, kw_only=True, tag="members"):
    """Memories of a group, in the order in which they joined it."""

    group_id: Id
    memory_ids: list[Id]


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which memory is which part of a document."""

    memory_id: Id
    position: Count
    hash: Annotated[str, Meta(pattern=r"^([0-9a-f]{2}){1,64}\Z")]
    line: Count
    page: Count | None = None


class DocumentLine(Line, frozen=True, kw_only=True, tag="document"):
    id: Id
    namespace: str
    source: Name
    root: str | None = None
    title: str
    titled: Annotated[int, Meta(ge=0, le=1)]
    document_type: Annotated[str, Meta(pattern=r"^[a-z]{1,32}\Z")]
    trust: Trust
    status: Literal["pending", "synced", "failed", "stale"]
    error: str | None = None
    content_hash: Annotated[str, Meta(max_length=128)]
    cut_by: Annotated[str, Meta(max_length=512)]
    size_bytes: Count
    modified_ns: Count | None = None
    created_us: Moment
    updated_us: Moment
    chunks: list[Chunk] = []


class SessionLine(Line, frozen=True, kw_only=True, tag="session"):
    """A session with the state of its own; its events follow."""

    id: Id
    user_id: Annotated[str, Meta(min_length=1, max_length=256)]
    app: Annotated[str, Meta(min_length=1, max_length=128)]
    session_type: Annotated[str, Meta(min_length=1, max_length=64)]
    metadata: Object = {}
    status: Status
    version: Version
    events: Count
    created_us: Moment
    updated_us: Moment
    created_by: str | None = None
    state: Object = {}


class EventLine(Line, frozen=True, kw_only=True, tag="session_event"):
    session_id: Id
    position: Version
    at_us: Moment
    author: str | None = None
    event: Any


class StateLine(Line, frozen=True, kw_only=True, tag="state"):
    """One key of the state that all sessions of a user or of an app share."""

    scope: Literal["user", "app"]
    owner: Annotated[str, Meta(min_length=1, max_length=256)]
    key: Name
    value: Any


Lines = (
    MemoryLine
    | VersionsLine
    | RelationshipLine
    | EvidenceLine
    | GroupLine
    | MembersLine
    | DocumentLine
    | SessionLine
    | EventLine
    | StateLine
)


def id_of(line: Lines) -> str:
    """What a record is called in reports."""
    for name in ("id", "memory_id", "source_id", "pattern_id", "group_id", "session_id"):
        found = getattr(line, name, None)
        if isinstance(found, str):
            return found
    assert isinstance(line, StateLine)
    return f"{line.scope}:{line.owner}/{line.key}"
