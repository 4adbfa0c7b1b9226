"""A session as it lies in its tables, and as callers see it."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.records import SessionEvent, SessionRecord


class SessionRow(msgspec.Struct, frozen=True):
    """One row of `sessions`."""

    id: str
    user_id: str
    app: str
    namespace: str
    session_type: str
    metadata: str
    status: str
    version: int
    events: int
    created_us: int
    updated_us: int
    created_by: str | None


COLUMNS = ", ".join(SessionRow.__struct_fields__)
INSERT = Insert("sessions", SessionRow.__struct_fields__)
INSERT_EVENT = Insert("session_events", ("session_id", "position", "at_us", "author", "event"))
FIND = f"SELECT {COLUMNS} FROM sessions WHERE id = ?"
CHANGE = f"""
UPDATE sessions SET version = version + 1, events = events + ?, updated_us = ?
WHERE id = ? RETURNING {COLUMNS}
"""
# The status is in indexes: it is only written when it changes.
ACTIVATE = "UPDATE sessions SET status = 'active' WHERE id = ?"
SET_STATUS = f"""
UPDATE sessions SET version = version + 1, status = ?, updated_us = ?
WHERE id = ? RETURNING {COLUMNS}
"""
LIST = f"""
SELECT {COLUMNS} FROM sessions
WHERE (created_us, id) < (?, ?) AND {{condition}}
ORDER BY created_us DESC, id DESC LIMIT ?
"""
EVENTS = """
SELECT position, at_us, author, event FROM session_events
WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?
"""
# One statement, so that session, state and events are of the same moment: they stand in the columns
# of the session, and the first column says which of them a row is.
_WITHOUT = ", ".join(["NULL"] * (len(SessionRow.__struct_fields__) - 2))
WHOLE = f"""
SELECT 'row', {COLUMNS} FROM sessions WHERE id = ?
UNION ALL
SELECT t.scope, t.key, t.value, {_WITHOUT}
FROM session_state t WHERE t.scope = 'session' AND t.owner = ?
UNION ALL
SELECT t.scope, t.key, t.value, {_WITHOUT}
FROM sessions s JOIN session_state t ON t.scope = 'user' AND t.owner = s.user_id
WHERE s.id = ?
UNION ALL
SELECT t.scope, t.key, t.value, {_WITHOUT}
FROM sessions s JOIN session_state t ON t.scope = 'app' AND t.owner = s.app
WHERE s.id = ?
UNION ALL
SELECT 'event', e.author, e.event, NULL, NULL, NULL, NULL, NULL, e.position, e.at_us, NULL, NULL,
    NULL
FROM sessions s JOIN session_events e ON e.session_id = s.id AND e.position > s.events - ?
WHERE s.id = ?
"""
DELETE = (
    "DELETE FROM session_events WHERE session_id = ?",
    "DELETE FROM session_state WHERE scope = 'session' AND owner = ?",
    "DELETE FROM sessions WHERE id = ?",
)
UNLINK_MEMORIES = """
UPDATE memories SET session_id = NULL WHERE session_id = ? RETURNING id, namespace
"""

Kept = tuple[str, str, str]
"""Scope, key and value, as JSON, of one piece of state."""


class WholeSession(msgspec.Struct, frozen=True):
    """A session with the state that is on disk and its last events, all of one moment."""

    row: SessionRow
    kept: list[Kept]
    events: list[SessionEvent]


def read_whole(session: Session, session_id: str, events: int) -> WholeSession | None:
    """A session with its state and some of its last events."""
    row: SessionRow | None = None
    kept: list[Kept] = []
    last: list[SessionEvent] = []
    ids = (session_id,) * 4
    for kind, *columns in session.execute(WHOLE, (*ids, events, session_id)):
        if kind == "row":
            row = SessionRow(*columns)
        elif kind == "event":
            author, event, position, at_us = columns[0], columns[1], columns[7], columns[8]
            last.append(event_of(position, at_us, author, event))
        else:
            kept.append((kind, columns[0], columns[1]))
    if row is None:
        return None
    last.sort(key=lambda event: event["position"])
    return WholeSession(row, kept, last)


def event_of(position: int, at_us: int, author: str | None, event: str) -> SessionEvent:
    """An event as callers see it."""
    return {
        "position": position,
        "at": to_iso(at_us),
        "author": author,
        "event": decode_json(event),
    }


def session_of(row: SessionRow) -> SessionRecord:
    """A session as callers see it."""
    return {
        "id": row.id,
        "user_id": row.user_id,
        "app": row.app,
        "session_type": row.session_type,
        "metadata": decode_json(row.metadata),
        "session_status": row.status,
        "version": row.version,
        "events": row.events,
        "created_at": to_iso(row.created_us),
        "updated_at": to_iso(row.updated_us),
        "created_by": row.created_by,
    }
