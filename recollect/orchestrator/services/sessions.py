"""Sessions: begun, added to, moved from status to status, deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from recollect.orchestrator.calls import Call, record, writes
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.sessions import rows, store
from recollect.orchestrator.sessions.homes import app_namespace, user_namespace
from recollect.orchestrator.sessions.rows import SessionRow
from recollect.orchestrator.sessions.state import Delta, States
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
AppendFunction = Callable[[WriteTransaction], records.EventAppended]
F = TypeVar("F", bound=Callable[[WriteTransaction], Any])


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

        return self._giving(delta, write)

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
    ) -> AppendFunction | Awaitable[AppendFunction]:
        event = self._states.json("event", operation.event, "event_bytes_max")
        delta = self._states.delta("state_delta", operation.state_delta)
        appending = partial(self._appending, call, operation, event, delta)
        return self._knowing(operation.session_id, delta, appending)

    def _appending(
        self, call: Call, operation: AppendEvent, event: str, delta: Delta
    ) -> AppendFunction:
        session_id = operation.session_id
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
    def set_state(
        self, call: Call, operation: SetState
    ) -> ChangeFunction | Awaitable[ChangeFunction]:
        delta = self._states.delta("state_delta", operation.state_delta)
        setting = partial(self._setting, call, operation, delta)
        return self._knowing(operation.session_id, delta, setting)

    def _setting(self, call: Call, operation: SetState, delta: Delta) -> ChangeFunction:
        session_id = operation.session_id
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

        return write if status in OPEN else self._ending(session_id, write)

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

        return self._ending(session_id, write)

    def _forget_temporary(self, transaction: WriteTransaction, session_id: str) -> None:
        transaction.after_commit.append(lambda: self._states.temporary.forget(session_id))

    def _knowing(self, session_id: str, delta: Delta, making: Callable[[], F]) -> F | Awaitable[F]:
        """A change of a session, made when it is known what `temp:` state others gave it."""
        temporary = self._states.temporary
        if not delta.temporary or not temporary.shared:
            return making()

        async def known() -> F:
            await temporary.refresh(session_id)
            return self._giving(delta, making())

        return known()

    def _giving(self, delta: Delta, write: F) -> F:
        """The same, answered when others can know of the `temp:` state that came with it."""
        temporary, changes = self._states.temporary, delta.temporary
        if changes and temporary.shared:

            async def finish(answer: Any) -> Any:
                # A retry is answered with the session that the first attempt made.
                await temporary.give(answer["session_id"], answer["version"], changes)
                return answer

            write.finish = finish  # type: ignore[attr-defined]
        return write

    def _ending(self, session_id: str, write: F) -> F:
        """The end of a session, answered when nobody has its `temp:` state any more."""
        temporary = self._states.temporary
        if temporary.shared:

            async def finish(answer: Any) -> Any:
                await temporary.end(session_id)
                return answer

            write.finish = finish  # type: ignore[attr-defined]
        return write


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
