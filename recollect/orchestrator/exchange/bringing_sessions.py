"""Sessions, their events and shared state on their way in."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.calls import record
from recollect.orchestrator.exchange.bringing import ADDED, PRESENT, Arrivals
from recollect.orchestrator.exchange.checking import Happening, Shared, Sitting
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.sessions import rows
from recollect.orchestrator.sessions.rows import SessionRow
from recollect.orchestrator.sessions.state import SESSION, States
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Row
from recollect.protocol.errors import AlreadyExists, InvalidArgument, NotFound

# As many as may come in one page, so that they are not looked for one by one.
FIND_EVENTS = """
SELECT position, at_us, author, event FROM session_events
WHERE session_id = ? AND position >= ? AND position < ?
"""
EVENTS_AT_ONCE = 500
FIND_STATE = "SELECT value FROM session_state WHERE scope = ? AND owner = ? AND key = ?"
INSERT_STATE = Insert("session_state", ("scope", "owner", "key", "value"))


class SessionArrival:
    """Takes sessions in. One of it serves one page, whose entries in the journal it keeps few."""

    def __init__(self, page: Arrivals, states: States) -> None:
        self._page = page
        self._states = states
        self._sessions: dict[str, SessionRow | None] = {}
        self._entered: set[str] = set()
        self._events: dict[tuple[str, int], dict[int, Row]] = {}

    def session(self, sitting: Sitting) -> str:
        """Take a session in with the state of its own."""
        page, line = self._page, sitting.line
        page.call.require(sitting.namespace, line.id)
        there = self._find(line.id)
        if there is not None:
            given = (line.user_id, line.app, line.created_us)
            if given == (there.user_id, there.app, there.created_us):
                return PRESENT
            raise AlreadyExists("The id is already that of another session.", session_id=line.id)
        row = SessionRow(
            id=line.id,
            user_id=line.user_id,
            app=line.app,
            namespace=sitting.namespace,
            session_type=line.session_type,
            metadata=sitting.metadata,
            status=line.status,
            version=line.version,
            events=line.events,
            created_us=line.created_us,
            updated_us=line.updated_us,
            created_by=line.created_by,
        )
        self._sessions[line.id] = row
        if not page.dry_run:
            page.transaction.insert(rows.INSERT, [msgspec.structs.astuple(row)])
            state = [(SESSION, row.id, key, value) for key, value in sitting.state.items()]
            page.transaction.insert(INSERT_STATE, state)
            record(
                page.call,
                page.transaction,
                subject=row.id,
                namespace=row.namespace,
                version_after=row.version,
            )
            self._entered.add(row.id)
        return ADDED

    def event(self, happening: Happening) -> str:
        """Take an event in, at its own place."""
        page, line = self._page, happening.line
        row = self._find(line.session_id)
        if row is None or not page.call.sees(row.namespace, row.id):
            if page.dry_run:
                return ADDED
            raise NotFound(f"There is no session {line.session_id!r}.", session_id=line.session_id)
        page.call.require(row.namespace, row.id)
        if line.position > row.events:
            raise InvalidArgument(
                f"Session {row.id} has {row.events:,} events; this would be number "
                f"{line.position:,}.",
                field="position",
            )
        known = self._known_events(row.id, line.position)
        if line.position in known:
            at_us, author, event = known[line.position]
            same = decode_json(event) == decode_json(happening.event)
            if (at_us, author) == (line.at_us, line.author) and same:
                return PRESENT
            raise AlreadyExists(
                f"Another event is number {line.position:,} of session {row.id}.",
                session_id=row.id,
            )
        if not page.dry_run:
            values = (row.id, line.position, line.at_us, line.author, happening.event)
            page.transaction.insert(rows.INSERT_EVENT, [values])
            known[line.position] = (line.at_us, line.author, happening.event)
            self._enter(row.id, row.namespace)
        return ADDED

    def shared(self, shared: Shared) -> str:
        """Take a key of shared state in."""
        page, line = self._page, shared.line
        page.call.require(shared.namespace, line.owner)
        place = (line.scope, line.owner, line.key)
        found = page.transaction.execute(FIND_STATE, place)
        if found:
            if decode_json(found[0][0]) == decode_json(shared.value):
                return PRESENT
            raise AlreadyExists(
                f"The state of {shared.namespace} has another value under this key.", key=line.key
            )
        if not page.dry_run:
            self._states.fill(page.transaction, line.scope, line.owner, line.key, shared.value)
            self._enter(shared.namespace, shared.namespace)
        return ADDED

    def _find(self, session_id: str) -> SessionRow | None:
        if session_id not in self._sessions:
            found = self._page.transaction.execute(rows.FIND, (session_id,))
            self._sessions[session_id] = SessionRow(*found[0]) if found else None
        return self._sessions[session_id]

    def _known_events(self, session_id: str, position: int) -> dict[int, Row]:
        """The events of a session that are there, of the stretch that one belongs to."""
        low = position - position % EVENTS_AT_ONCE
        if (session_id, low) not in self._events:
            params = (session_id, low, low + EVENTS_AT_ONCE)
            found = self._page.transaction.execute(FIND_EVENTS, params)
            self._events[session_id, low] = {n: tuple(rest) for n, *rest in found}
        return self._events[session_id, low]

    def _enter(self, subject: str, namespace: str) -> None:
        """One entry in the journal for all that a page adds to the same."""
        if subject not in self._entered:
            self._entered.add(subject)
            record(self._page.call, self._page.transaction, subject=subject, namespace=namespace)
