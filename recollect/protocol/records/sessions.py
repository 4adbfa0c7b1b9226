"""The shapes of sessions, their events and their state."""

from __future__ import annotations

from typing import Any, TypedDict


class SessionRecord(TypedDict):
    """One session. `version` counts up with every change to it."""

    id: str
    user_id: str
    app: str
    session_type: str
    metadata: dict[str, Any]
    session_status: str
    version: int
    events: int
    created_at: str
    updated_at: str
    created_by: str | None


class SessionEvent(TypedDict):
    """One event; positions count from 1 without a gap."""

    position: int
    at: str
    author: str | None
    event: Any


class SessionCreated(TypedDict):
    status: str
    session_id: str
    user_id: str
    session_type: str
    app: str
    session_status: str
    version: int
    created_at: str
    seq: int


class SessionFetched(TypedDict):
    status: str
    session: SessionRecord
    state: dict[str, Any]
    events: list[SessionEvent]
    """The last ones, in their order."""


class EventAppended(TypedDict):
    status: str
    session_id: str
    position: int
    version: int
    seq: int
    at: str


class EventsListed(TypedDict):
    status: str
    session_id: str
    events: list[SessionEvent]
    count: int
    cursor: str | None


class SessionChanged(TypedDict):
    status: str
    session_id: str
    session_status: str
    version: int
    seq: int
    updated_at: str


class SessionState(TypedDict):
    status: str
    session_id: str
    version: int
    state: dict[str, Any]


class SessionsListed(TypedDict):
    status: str
    sessions: list[SessionRecord]
    count: int
    cursor: str | None


class SessionDeleted(TypedDict):
    status: str
    session_id: str
    seq: int
    events: int
    unlinked: int
    """How many memories belonged to it; they stay."""
