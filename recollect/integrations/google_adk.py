"""The session service of Google's ADK on Recollect.

    runner = Runner(agent=…, app_name=…, session_service=RecollectSessionService())

An event and the state that it changes are written in one step. What an agent keeps for good is in
`google_adk_memory`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

try:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.sessions import BaseSessionService, Session
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from pydantic_core import to_jsonable_python
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "recollect.integrations.google_adk needs ADK: pip install 'recollect[adk]'"
    ) from missing

from recollect.integrations import named_sessions
from recollect.integrations.adapter import AsyncAdapter
from recollect.integrations.events import all_events, packed, unpacked
from recollect.integrations.google_adk_memory import RecollectMemoryService
from recollect.integrations.google_adk_state import TEMP, shown_state, stored_state
from recollect.integrations.named_sessions import Owner
from recollect.integrations.steps import Steps
from recollect.protocol.errors import AlreadyExists, LimitExceeded, NotFound
from recollect.protocol.operations import (
    AppendEvent,
    CreateSession,
    DeleteSession,
    GetSession,
    GetState,
    ListSessions,
)
from recollect.protocol.records import SessionEvent, SessionRecord

__all__ = ["RecollectMemoryService", "RecollectSessionService"]

KIND = "google-adk"
PROBE = "google-adk.probe"
"""The kind of a session that is made to look at state, and deleted."""
TAIL_EVENTS = 100
PAGE_SESSIONS = 100
PAGES_MAX = 1000
CONCURRENT_MAX = 16


class RecollectSessionService(AsyncAdapter, BaseSessionService):
    """Sessions of ADK that all processes share and that outlive them.

    One service serves any number of event loops.
    """

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session, under a new id if none is given."""
        name = (session_id or "").strip() or str(uuid.uuid4())
        owner = Owner(user_id, app_name, KIND)
        kept = stored_state(app_name, _jsonable(state or {}))
        try:
            found = await self._follow(named_sessions.create(owner, name, kept))
        except AlreadyExists:
            raise AlreadyExistsError(f"Session with id {name} already exists.") from None
        begun = await self._follow(self._reading(found, None))
        assert begun is not None, "it was made a moment ago"
        return begun

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session with its state and its events, or those that `config` asks for."""
        found = await self._find(app_name, user_id, session_id)
        return None if found is None else await self._follow(self._reading(found, config))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions of an app or of one of its users without their events, the one that was
        used last at the end."""
        found = await self._follow(_listing(app_name, user_id))
        room = asyncio.Semaphore(CONCURRENT_MAX)
        none = GetSessionConfig(num_recent_events=0)

        async def read(session_id: str) -> Session | None:
            async with room:
                return await self._follow(self._reading(session_id, none))

        read_all = await asyncio.gather(*(read(record["id"]) for record in found))
        sessions = [session for session in read_all if session is not None]
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events for good; one that is not there is no error."""
        owner = Owner(user_id, app_name, KIND)
        await self._follow(named_sessions.delete(owner, session_id.strip()))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that all sessions of a user in an app share, by its bare keys."""
        return await self._follow(_reading_user_state(app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event and change the state, in one step; the same event again changes
        nothing."""
        if event.partial:
            return event
        found = await self._find(session.app_name, session.user_id, session.id)
        if found is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        whole = event.actions.state_delta
        # What is temporary is for the rest of the invocation, in the session at hand alone.
        event.actions.state_delta = {key: whole[key] for key in whole if not key.startswith(TEMP)}
        kept = event.model_dump(mode="json", exclude_none=True)
        delta = stored_state(session.app_name, _jsonable(event.actions.state_delta))
        try:
            await self._follow(_appending(found, kept, delta))
        except NotFound:
            raise SessionNotFoundError(f"Session {session.id} not found.") from None
        if not any(known == event for known in session.events if known.id == event.id):
            session.state.update(whole)
            session.events.append(event)
        session.last_update_time = event.timestamp
        return event

    async def _find(self, app_name: str, user_id: str, session_id: str) -> str | None:
        owner = Owner(user_id, app_name, KIND)
        return await self._follow(named_sessions.find(owner, session_id.strip()))

    def _reading(self, session_id: str, config: GetSessionConfig | None) -> Steps[Session | None]:
        recent = config.num_recent_events if config is not None else None
        # One event at least, for its time is that of the session.
        wanted = TAIL_EVENTS if recent is None else min(max(recent, 1), TAIL_EVENTS)
        try:
            seen = yield GetSession(session_id, events=wanted)
            kept: list[SessionEvent] = seen["events"]
            begins_at = kept[0]["position"] if kept else 1
            if begins_at > 1 and (recent is None or recent > len(kept)):
                earlier = yield from all_events(session_id, before=begins_at)
                kept = [*earlier, *kept]
        except NotFound:
            return None
        record: SessionRecord = seen["session"]
        events = [Event.model_validate(unpacked(event["event"])) for event in kept]
        updated_at = events[-1].timestamp if events else _seconds(record["created_at"])
        return Session(
            id=record["metadata"]["name"],
            app_name=record["app"],
            user_id=record["user_id"],
            state=shown_state(record["app"], seen["state"]),
            events=_selected(events, config),
            last_update_time=updated_at,
        )


def _appending(session_id: str, event: Any, delta: Mapping[str, Any]) -> Steps[None]:
    # The same event of the same session has the same key, so that a repetition changes nothing.
    told = json.dumps([session_id, event], sort_keys=True).encode()
    key = hashlib.sha256(told).hexdigest()
    yield AppendEvent(session_id, packed(event), dict(delta), idempotency_key=key)


def _listing(app_name: str, user_id: str | None) -> Steps[list[SessionRecord]]:
    found: list[SessionRecord] = []
    cursor = None
    for _ in range(PAGES_MAX):
        page = yield ListSessions(
            user_id,
            "active",
            app=app_name,
            session_type=KIND,
            limit=PAGE_SESSIONS,
            cursor=cursor,
        )
        found += page["sessions"]
        cursor = page["cursor"]
        if cursor is None:
            return found
    raise LimitExceeded(
        f"The app has more than {PAGES_MAX * PAGE_SESSIONS:,} sessions; name a user.",
        limit="PAGES_MAX",
        maximum=PAGES_MAX * PAGE_SESSIONS,
    )


def _reading_user_state(app_name: str, user_id: str) -> Steps[dict[str, Any]]:
    """State is read through a session: any of the user's, or one that is made for it."""
    page = yield ListSessions(user_id, limit=1)
    made = None
    if page["sessions"]:
        session_id = page["sessions"][0]["id"]
    else:
        session_id = made = (yield CreateSession(user_id, PROBE, app=app_name))["session_id"]
    state = (yield GetState(session_id))["state"]
    if made is not None:
        yield DeleteSession(made)
    shared = shown_state(app_name, state)
    return {
        key.removeprefix("user:"): value for key, value in shared.items() if key.startswith("user:")
    }


def _selected(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    """The events that a configuration asks for, as ADK's own services choose them."""
    if config is None:
        return events
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events else []
    if config.after_timestamp is not None:
        for place in range(len(events) - 1, -1, -1):
            if events[place].timestamp < config.after_timestamp:
                return events[place + 1 :]
    return events


def _jsonable(state: Mapping[str, Any]) -> dict[str, Any]:
    """State as JSON; what has no such form is kept as the text that describes it, as in ADK."""
    found: dict[str, Any] = to_jsonable_python(dict(state), serialize_unknown=True)
    return found


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
