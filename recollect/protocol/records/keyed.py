"""The shapes of memories that are reached by namespace and key."""

from __future__ import annotations

from typing import Any, TypedDict


class MemoryPut(TypedDict):
    status: str
    memory_id: str
    namespace: str
    key: str
    version: int
    seq: int
    created: bool
    """Whether the key was free before."""
    updated_at: str


class NamespaceFound(TypedDict):
    """A namespace with how many living memories are in it, those below it not counted."""

    namespace: str
    memories: int


class NamespacesListed(TypedDict):
    status: str
    namespaces: list[NamespaceFound]
    count: int
    cursor: str | None


class FieldChange(TypedDict):
    before: Any
    after: Any


class MemoryDiff(TypedDict):
    status: str
    memory_id: str
    from_version: int
    to_version: int
    changes: dict[str, FieldChange]
    text: str
    """How the content changed, as a unified diff; empty if it did not."""


class VersionsSquashed(TypedDict):
    status: str
    seq: int
    memories: int
    versions: int
    complete: bool
    """Whether nothing is left that fits; if not, call again."""
