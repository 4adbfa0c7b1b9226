"""Reading sessions: one with its state and events, or many, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from recollect.orchestrator.calls import Call, Refusal, reads
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.sessions import rows, store
from recollect.orchestrator.sessions.homes import readable_sessions, user_namespace
from recollect.orchestrator.sessions.rows import SessionRow, WholeSession, event_of, session_of
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.sessions.statuses import OPEN
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import (
    GetSession,
    GetState,
    ListActiveSessions,
    ListEvents,
    ListSessions,
)

T = TypeVar("T")

FIRST_PAGE = ["", (1 << 63) - 1]
"""Newer than every session: an id, and when it was made."""
EVENTS_INLINE_MAX = 20
"""A session with more events than these is not read on the event loop, for they may be large."""
# Word for word the condition of the index that holds only such sessions. That it names what they
# are not keeps SQLite from gathering the sessions status by status, to sort them all.
IS_OPEN = "status NOT IN ('terminated', 'archived')"


class SessionReadingService:
    """Reads of sessions, within what the caller may see."""

    def __init__(self, storage: Storage, states: States, validator: Validator) -> None:
        self._storage = storage
        self._states = states
        self._validator = validator

    @reads(GetSession)
    def get_session(
        self, call: Call, operation: GetSession
    ) -> records.SessionFetched | Awaitable[records.SessionFetched]:
        self._validator.at_most("page_items_max", "events", operation.events, "items")

        def answer(whole: WholeSession) -> records.SessionFetched:
            return {
                "status": "success",
                "session": session_of(whole.row),
                "state": self._state(call, whole),
                "events": whole.events,
            }

        return self._point_read(call, operation.session_id, operation.events, answer)

    @reads(GetState)
    def get_state(
        self, call: Call, operation: GetState
    ) -> records.SessionState | Awaitable[records.SessionState]:
        def answer(whole: WholeSession) -> records.SessionState:
            return {
                "status": "success",
                "session_id": whole.row.id,
                "version": whole.row.version,
                "state": self._state(call, whole),
            }

        return self._point_read(call, operation.session_id, 0, answer)

    def _point_read(
        self, call: Call, session_id: str, events: int, answer: Callable[[WholeSession], T]
    ) -> T | Awaitable[T]:
        """The answer made of a session: at once where the storage is at hand."""

        def read(session: Session) -> WholeSession:
            return store.find_whole(call, session, session_id, events)

        if self._storage.inline_reads and events <= EVENTS_INLINE_MAX:
            return answer(self._storage.read_inline(read))
        return self._answer_later(session_id, self._storage.read(read), answer)

    async def _answer_later(
        self,
        session_id: str,
        reading: asyncio.Future[WholeSession],
        answer: Callable[[WholeSession], T],
    ) -> T:
        if self._states.temporary.shared:
            # What others set is asked for while the storage reads.
            await self._states.temporary.refresh(session_id)
        return answer(await reading)

    def _state(self, call: Call, whole: WholeSession) -> dict[str, Any]:
        # A session that was ended through another orchestrator may still have something here.
        open_still = whole.row.status in OPEN
        temporary = self._states.temporary.of(whole.row.id) if open_still else {}
        return self._states.shown(call, whole.row, whole.kept, temporary)

    @reads(ListEvents)
    def list_events(
        self, call: Call, operation: ListEvents
    ) -> asyncio.Future[records.EventsListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1)
        after = position[0] if position else operation.after

        def read(session: Session) -> records.EventsListed:
            store.find(call, session, operation.session_id)
            found = session.execute(rows.EVENTS, (operation.session_id, after, limit + 1))
            events = [event_of(*row) for row in found[:limit]]
            more = len(found) > limit
            return {
                "status": "success",
                "session_id": operation.session_id,
                "events": events,
                "count": len(events),
                "cursor": make_cursor(operation, [events[-1]["position"]]) if more else None,
            }

        return self._storage.read(read)

    @reads(ListSessions)
    def list_sessions(
        self, call: Call, operation: ListSessions
    ) -> asyncio.Future[records.SessionsListed]:
        wanted = {
            "user_id": operation.user_id,
            "status": operation.status,
            "app": operation.app,
            "session_type": operation.session_type,
        }
        return self._list(call, operation, wanted)

    @reads(ListActiveSessions)
    def list_active_sessions(
        self, call: Call, operation: ListActiveSessions
    ) -> asyncio.Future[records.SessionsListed]:
        return self._list(call, operation, {"user_id": operation.user_id}, IS_OPEN)

    def _readable(self, call: Call, user_id: str | None) -> Condition:
        """The sessions that the caller may see: those of a user, or of whoever it may."""
        if user_id is not None:
            return ("TRUE" if call.sees(user_namespace(user_id), user_id) else "FALSE"), []
        patterns = call.grants.within(None)
        if patterns == ():
            call.refusals.append(Refusal("", None, "not readable"))
        return readable_sessions(patterns)

    def _list(
        self,
        call: Call,
        operation: ListSessions | ListActiveSessions,
        wanted: dict[str, str | None],
        *conditions: str,
    ) -> asyncio.Future[records.SessionsListed]:
        limit = self._validator.page(operation.limit)
        last_id, last_us = read_cursor(operation, operation.cursor, 2, texts=1) or FIRST_PAGE
        named = {column: value for column, value in wanted.items() if value is not None}
        for column, value in named.items():
            self._validator.asked(column, value, "key_chars_max")
        readable, params = self._readable(call, operation.user_id)
        parts = [*conditions, readable, *(f"{column} = ?" for column in named)]
        params = [last_us, last_id, *params, *named.values(), limit + 1]
        sql = rows.LIST.format(condition=" AND ".join(parts))

        def read(session: Session) -> records.SessionsListed:
            found = [SessionRow(*row) for row in session.execute(sql, params)]
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1].id, found[-1].created_us])
            return {
                "status": "success",
                "sessions": [session_of(row) for row in found],
                "count": len(found),
                "cursor": cursor,
            }

        return self._storage.read(read)
