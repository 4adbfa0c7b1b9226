"""Sessions: the conversations and runs that memories come from, with their events and state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields
from recollect.protocol.tool import Tool

SessionId = Annotated[str, Meta(min_length=1, description="Id of the session.")]
Status = Literal["created", "active", "paused", "terminated", "archived"]
StateDelta = Annotated[
    dict[str, Any],
    Meta(
        description="Keys to set; null removes one. `temp:` keys are never written to disk, "
        "`session:` and bare keys belong to the session, `user:` and `app:` keys are shared by all "
        "sessions of that user or app."
    ),
]


TEMPORARY = "temp:"


def holds_temporary(operation: Operation[Any]) -> bool:
    """Whether an operation carries state that is never written to disk."""
    for name in ("state_delta", "state"):
        given = getattr(operation, name, None)
        if isinstance(given, dict) and any(str(key).startswith(TEMPORARY) for key in given):
            return True
    return False


class CreateSessionOptions(Operation[records.SessionCreated], frozen=True, kw_only=True):
    app: Annotated[
        str,
        Meta(min_length=1, max_length=128, description="The app whose `app:` state it shares."),
    ] = "default"
    state: Annotated[
        dict[str, Any] | None, Meta(description="The state to begin with, by the same keys.")
    ] = None


@operation(
    access="write",
    http=("POST", "/v1/sessions"),
    mcp=Tool(
        when="Use it at the beginning of a conversation or a run whose course shall be kept.",
        example={"user_id": "alice", "state": {"topic": "travel"}},
    ),
)
class CreateSession(CreateSessionOptions, frozen=True):
    """Begin a session; memories that are written under its id belong to it."""

    user_id: Annotated[str, Meta(min_length=1, max_length=256, description="Whose session it is.")]
    session_type: Annotated[
        str, Meta(min_length=1, max_length=64, description="What kind of session.")
    ] = "conversation"
    session_metadata: Annotated[
        dict[str, Any] | None, Meta(description="Any JSON object to keep with it.")
    ] = None


class GetSessionOptions(Operation[records.SessionFetched], frozen=True, kw_only=True):
    events: Annotated[
        int, Meta(ge=0, le=fields.INTEGER_MAX, description="How many of its last events to show.")
    ] = 20
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("GET", "/v1/sessions/{session_id}"),
    mcp=Tool(
        when="Use it to take up a session where it was left.",
        example={"session_id": "0198f2a3b4c5d6e7", "events": 5},
    ),
)
class GetSession(GetSessionOptions, frozen=True):
    """A session with its state and its last events."""

    session_id: SessionId


@operation(
    access="write",
    http=("POST", "/v1/sessions/{session_id}/events"),
    mcp=Tool(
        when="Use it for each turn or step that shall be kept in its order.",
        example={
            "session_id": "0198f2a3b4c5d6e7",
            "event": {"role": "user", "text": "To Lyon."},
            "state_delta": {"to": "Lyon"},
        },
    ),
)
class AppendEvent(Operation[records.EventAppended], frozen=True):
    """Append an event to a session, and change its state in the same step.

    A session that was only created becomes active by it."""

    session_id: SessionId
    event: Annotated[Any, Meta(description="Any JSON value.")]
    state_delta: StateDelta | None = None
    expected_version: fields.ExpectedVersion = None


class ListEventsOptions(Operation[records.EventsListed], frozen=True, kw_only=True):
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("GET", "/v1/sessions/{session_id}/events"),
    mcp=Tool(
        when="Use it for more of the course of a session than `get_session` shows.",
        example={"session_id": "0198f2a3b4c5d6e7", "after": 20},
    ),
)
class ListEvents(ListEventsOptions, frozen=True):
    """The events of a session in their order, page by page."""

    session_id: SessionId
    limit: fields.Limit = 100
    after: Annotated[
        int, Meta(ge=0, le=fields.INTEGER_MAX, description="Only events behind this position.")
    ] = 0


@operation(access="write", http=("POST", "/v1/sessions/{session_id}/status"))
class UpdateStatus(Operation[records.SessionChanged], frozen=True):
    """Move a session on: created, active, paused, terminated, archived."""

    session_id: SessionId
    status: Annotated[Status, Meta(description="The status that it shall have.")]
    expected_version: fields.ExpectedVersion = None


class GetStateOptions(Operation[records.SessionState], frozen=True, kw_only=True):
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/sessions/{session_id}/state"))
class GetState(GetStateOptions, frozen=True):
    """The state of a session, with what it shares by user and app."""

    session_id: SessionId


@operation(
    access="write", http=("PATCH", "/v1/sessions/{session_id}/state"), http_body="state_delta"
)
class SetState(Operation[records.SessionChanged], frozen=True):
    """Change the state of a session by a delta; get_state shows all of it."""

    session_id: SessionId
    state_delta: StateDelta
    expected_version: fields.ExpectedVersion = None


class ListSessionsOptions(Operation[records.SessionsListed], frozen=True, kw_only=True):
    app: Annotated[str | None, Meta(description="Only sessions of this app.")] = None
    session_type: Annotated[str | None, Meta(description="Only sessions of this kind.")] = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(
    access="read",
    http=("GET", "/v1/sessions"),
    mcp=Tool(
        when="Use it to find the id of an earlier session.",
        example={"user_id": "alice", "limit": 5},
    ),
)
class ListSessions(ListSessionsOptions, frozen=True):
    """Sessions, the newest first, page by page."""

    user_id: Annotated[str | None, Meta(description="Only sessions of this user.")] = None
    status: Annotated[Status | None, Meta(description="Only sessions in this status.")] = None


class ListActiveSessionsOptions(Operation[records.SessionsListed], frozen=True, kw_only=True):
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="read", http=("GET", "/v1/sessions:active"))
class ListActiveSessions(ListActiveSessionsOptions, frozen=True):
    """Sessions that are neither terminated nor archived, the newest first."""

    user_id: Annotated[str | None, Meta(description="Only sessions of this user.")] = None


@operation(
    access="write",
    http=("POST", "/v1/sessions/{session_id}/terminate"),
    mcp=Tool(
        name="end_session",
        when="Use it when the conversation or run is over.",
        example={"session_id": "0198f2a3b4c5d6e7"},
    ),
)
class TerminateSession(Operation[records.SessionChanged], frozen=True):
    """End a session: its `temp:` state is gone, and it takes no more events."""

    session_id: SessionId
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/sessions/{session_id}/archive"))
class ArchiveSession(Operation[records.SessionChanged], frozen=True):
    """Put an ended session away; it can still be read."""

    session_id: SessionId
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("DELETE", "/v1/sessions/{session_id}"))
class DeleteSession(Operation[records.SessionDeleted], frozen=True):
    """Delete a session with its events and its state for good; its memories stay, unlinked."""

    session_id: SessionId
    expected_version: fields.ExpectedVersion = None
