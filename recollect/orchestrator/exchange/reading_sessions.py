"""Sessions on their way out: what they are, their own state, their events, and shared state.

`temp:` state is on no disk and in no export.
"""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.exchange.pages import Extent, Page
from recollect.orchestrator.exchange.positions import Position
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.sessions.homes import app_namespace, user_namespace
from recollect.orchestrator.sessions.rows import COLUMNS, SessionRow
from recollect.orchestrator.sessions.state import APP, SESSION, USER
from recollect.orchestrator.storage.interface import Session

EVENTS_AT_ONCE = 200
STATE_AT_ONCE = 200
SESSIONS = f"""
SELECT {COLUMNS} FROM sessions WHERE id > ? AND {{condition}} ORDER BY id LIMIT ?
"""
OWN_STATE = "SELECT key, value FROM session_state WHERE scope = ? AND owner = ? ORDER BY key"
EVENTS = """
SELECT position, at_us, author, event FROM session_events
WHERE session_id = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?
"""
STATE = """
SELECT owner, key, value FROM session_state
WHERE scope = ? AND (owner, key) > (?, ?) ORDER BY owner, key LIMIT ?
"""
HOMES = {USER: user_namespace, APP: app_namespace}


def read_sessions(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with sessions, each followed by its events."""
    if at.bound:
        at = _events(session, at, page)
    condition, params = extent.condition()
    sql = SESSIONS.format(condition=condition)
    while not page.full:
        found = session.execute(sql, (at.text, *params, 1))
        if not found:
            return None
        row = SessionRow(*found[0])
        state: dict[str, str] = dict(session.execute(OWN_STATE, (SESSION, row.id)))
        page.add(
            "session", _shown(row, state), 400 + len(row.metadata) + sum(map(len, state.values()))
        )
        at = Position(stage=at.stage, until=at.until, text=row.id, bound=row.events)
        if at.bound and not page.full:
            at = _events(session, at, page)
    return at


def _shown(row: SessionRow, state: dict[str, str]) -> dict[str, Any]:
    return {
        "id": row.id,
        "user_id": row.user_id,
        "app": row.app,
        "session_type": row.session_type,
        "metadata": decode_json(row.metadata),
        "status": row.status,
        "version": row.version,
        "events": row.events,
        "created_us": row.created_us,
        "updated_us": row.updated_us,
        "created_by": row.created_by,
        "state": {key: decode_json(value) for key, value in state.items()},
    }


def _events(session: Session, at: Position, page: Page) -> Position:
    """The events of a session up to the last that it had when it was exported."""
    while not page.full:
        most = page.rows(EVENTS_AT_ONCE)
        found = session.execute(EVENTS, (at.text, at.number, at.bound, most))
        for position, at_us, author, event in found:
            record = {
                "session_id": at.text,
                "position": position,
                "at_us": at_us,
                "author": author,
                "event": decode_json(event),
            }
            page.add("session_event", record, 150 + len(event))
            at = Position(
                stage=at.stage, until=at.until, text=at.text, number=position, bound=at.bound
            )
            if page.full:
                return at
        if len(found) < most:
            return Position(stage=at.stage, until=at.until, text=at.text)
    return at


def read_user_state(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """Fill a page with the state that the sessions of each user share."""
    return _state(session, extent, at, page, USER)


def read_app_state(session: Session, extent: Extent, at: Position, page: Page) -> Position | None:
    """The same for apps."""
    return _state(session, extent, at, page, APP)


def _state(
    session: Session, extent: Extent, at: Position, page: Page, scope: str
) -> Position | None:
    while not page.full:
        most = page.rows(STATE_AT_ONCE)
        found = session.execute(STATE, (scope, at.text, at.other_text, most))
        for owner, key, value in found:
            at = Position(stage=at.stage, until=at.until, text=owner, other_text=key)
            if extent.holds(HOMES[scope](owner)):
                record = {"scope": scope, "owner": owner, "key": key, "value": decode_json(value)}
                page.add("state", record, 120 + len(value))
            if page.full:
                return at
        if len(found) < most:
            return None
    return at
