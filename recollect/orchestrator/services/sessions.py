"""Sessions: begun, added to, moved from status to status, deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from recollect.orchestrator.calls import Call, record, writes
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.sessions import rows, store
from recollect.orchestrator.sessions.homes import app_namespace, user_namespace
from recollect.orchestrator.sessions.rows import SessionRow
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.sessions.statuses import (
    OPEN,
    check_open,
    check_takes_events,
    check_transition,
)
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import (
    AppendEvent,
    ArchiveSession,
    CreateSession,
    DeleteSession,
    SetState,
    TerminateSession,
    UpdateStatus,
)

ChangeFunction = Callable[[WriteTransaction], records.SessionChanged]


class SessionService:
    """Changes of sessions."""

    def __init__(
        self, states: States, memories: MemoryStore, validator: Validator, ids: IdSource
    ) -> None:
        self._states = states
        self._memories = memories
        self._validator = validator
        self._ids = ids

    @writes(CreateSession)
    def create_session(
        self, call: Call, operation: CreateSession
    ) -> Callable[[WriteTransaction], records.SessionCreated]:
        self._validator.text("session_type", operation.session_type, "key_chars_max")
        namespace = self._home("user_id", operation.user_id, user_namespace)
        self._home("app", operation.app, app_namespace)
        call.require(namespace)
        metadata = self._validator.metadata(operation.session_metadata, "session_metadata")
        delta = self._states.delta("state", operation.state)
        session_id = self._ids.new()
        if (misfit := self._states.misfit(session_id, delta)) is not None:
            raise misfit
        row = SessionRow(
            id=session_id,
            user_id=operation.user_id,
            app=operation.app,
            namespace=namespace,
            session_type=operation.session_type,
            metadata=metadata,
            status="created",
            version=1,
            events=0,
            created_us=call.now_us,
            updated_us=call.now_us,
            created_by=call.author,
        )

        def write(transaction: WriteTransaction) -> records.SessionCreated:
            shared = self._states.apply(call, transaction, row, delta)
            transaction.insert(rows.INSERT, [msgspec.structs.astuple(row)])
            return {
                "status": "success",
                "session_id": row.id,
                "user_id": row.user_id,
                "session_type": row.session_type,
                "app": row.app,
                "session_status": row.status,
                "version": row.version,
                "created_at": to_iso(row.created_us),
                "seq": store.entered(call, transaction, row, shared),
            }

        return write

    def _home(self, field: str, name: str, namespace_of: Callable[[str], str]) -> str:
        """The namespace of a user or an app, if their name fits into one."""
        self._validator.text(field, name, "key_chars_max")
        namespace = namespace_of(name)
        length = len(namespace)
        self._validator.at_most("namespace_chars_max", field, length, "characters as a namespace")
        return self._validator.namespace(namespace)

    @writes(AppendEvent)
    def append_event(
        self, call: Call, operation: AppendEvent
    ) -> Callable[[WriteTransaction], records.EventAppended]:
        session_id = operation.session_id
        event = self._states.json("event", operation.event, "event_bytes_max")
        delta = self._states.delta("state_delta", operation.state_delta)
        misfit = self._states.misfit(session_id, delta)

        def write(transaction: WriteTransaction) -> records.EventAppended:
            row = store.change(call, transaction, session_id, operation.expected_version, events=1)
            check_takes_events(session_id, row.status)
            if misfit is not None:
                raise misfit
            if row.status == "created":
                transaction.execute(rows.ACTIVATE, (session_id,))
            shared = self._states.apply(call, transaction, row, delta) if delta else None
            entry = (session_id, row.events, call.now_us, call.author, event)
            transaction.insert(rows.INSERT_EVENT, [entry])
            return {
                "status": "success",
                "session_id": session_id,
                "position": row.events,
                "version": row.version,
                "seq": store.entered(call, transaction, row, shared),
                "at": to_iso(call.now_us),
            }

        return write

    @writes(SetState)
    def set_state(self, call: Call, operation: SetState) -> ChangeFunction:
        session_id = operation.session_id
        delta = self._states.delta("state_delta", operation.state_delta)
        misfit = self._states.misfit(session_id, delta)

        def write(transaction: WriteTransaction) -> records.SessionChanged:
            expected = operation.expected_version
            if not delta:
                row = store.find_expected(call, transaction, session_id, expected)
                return changed(row, transaction.last_seq())
            row = store.change(call, transaction, session_id, expected)
            check_open(session_id, row.status)
            if misfit is not None:
                raise misfit
            shared = self._states.apply(call, transaction, row, delta)
            return changed(row, store.entered(call, transaction, row, shared))

        return write

    @writes(UpdateStatus)
    def update_status(self, call: Call, operation: UpdateStatus) -> ChangeFunction:
        return self._moving(
            call, operation.session_id, operation.status, operation.expected_version
        )

    @writes(TerminateSession)
    def terminate_session(self, call: Call, operation: TerminateSession) -> ChangeFunction:
        return self._moving(call, operation.session_id, "terminated", operation.expected_version)

    @writes(ArchiveSession)
    def archive_session(self, call: Call, operation: ArchiveSession) -> ChangeFunction:
        return self._moving(call, operation.session_id, "archived", operation.expected_version)

    def _moving(
        self, call: Call, session_id: str, status: str, expected_version: int | None
    ) -> ChangeFunction:
        """Moves a session to a status; one that has it already stays as it is."""

        def write(transaction: WriteTransaction) -> records.SessionChanged:
            row = store.find_expected(call, transaction, session_id, expected_version)
            if row.status == status:
                return changed(row, transaction.last_seq())
            check_transition(session_id, row.status, status)
            [moved] = transaction.execute(rows.SET_STATUS, (status, call.now_us, session_id))
            row = SessionRow(*moved)
            if status not in OPEN:
                self._forget_temporary(transaction, session_id)
            return changed(row, store.entered(call, transaction, row))

        return write

    @writes(DeleteSession)
    def delete_session(
        self, call: Call, operation: DeleteSession
    ) -> Callable[[WriteTransaction], records.SessionDeleted]:
        session_id = operation.session_id

        def write(transaction: WriteTransaction) -> records.SessionDeleted:
            row = store.find_expected(call, transaction, session_id, operation.expected_version)
            for statement in rows.DELETE:
                transaction.execute(statement, (session_id,))
            unlinked = transaction.execute(rows.UNLINK_MEMORIES, (session_id,))
            self._forget_temporary(transaction, session_id)
            drop = self._memories.cache.drop
            for memory_id, _ in unlinked:
                transaction.after_commit.append(partial(drop, memory_id))
            seq = record(
                call,
                transaction,
                subject=session_id,
                namespace=row.namespace,
                version_before=row.version,
            )
            return {
                "status": "success",
                "session_id": session_id,
                "seq": seq,
                "events": row.events,
                "unlinked": sum(call.grants.allows(home, "read") for _, home in unlinked),
            }

        return write

    def _forget_temporary(self, transaction: WriteTransaction, session_id: str) -> None:
        transaction.after_commit.append(lambda: self._states.temporary.forget(session_id))


def changed(row: SessionRow, seq: int) -> records.SessionChanged:
    """The answer to a change.

    It does not hold the state: answers are kept on disk with the key of their request, and `temp:`
    values must not be there.
    """
    return {
        "status": "success",
        "session_id": row.id,
        "session_status": row.status,
        "version": row.version,
        "seq": seq,
        "updated_at": to_iso(row.updated_us),
    }
