"""The shapes of long-term memory."""

from __future__ import annotations

from typing import Any, TypedDict


class LongtermStored(TypedDict):
    status: str
    memory_id: str
    collection: str
    version: int
    created: bool
    """Whether it is new; else it is the next version of what was there."""
    seq: int
    updated_at: str


class ProcedureRecord(TypedDict):
    """How something is done."""

    id: str
    namespace: str
    name: str
    version: int
    description: str
    steps: list[str]
    metadata: dict[str, Any]
    tags: list[str]
    importance: float
    source: str | None
    trust: float
    created_at: str
    updated_at: str
    updated_by: str | None


class ProcedureFetched(TypedDict):
    status: str
    procedure: ProcedureRecord


class ConfigChangeRecord(TypedDict):
    """One change of a setting."""

    id: str
    namespace: str
    component: str
    parameter: str
    old_value: Any
    new_value: Any
    reason: str
    changed_by: str | None
    at: str


class ConfigChangesListed(TypedDict):
    status: str
    changes: list[ConfigChangeRecord]
    count: int
    cursor: str | None
