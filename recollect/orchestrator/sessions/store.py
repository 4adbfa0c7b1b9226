"""Sessions found and changed for a caller: access and versions are checked in one place."""

from __future__ import annotations

from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.sessions import rows
from recollect.orchestrator.sessions.rows import SessionRow, WholeSession
from recollect.orchestrator.storage.interface import Row, Session, WriteTransaction
from recollect.protocol.errors import NotFound, VersionConflict


def find(call: Call, session: Session, session_id: str) -> SessionRow:
    """A session that the caller may see and do with what the operation does."""
    return _admitted(call, session_id, session.execute(rows.FIND, (session_id,)))


def find_whole(call: Call, session: Session, session_id: str, events: int = 0) -> WholeSession:
    """A session with its state and some of its last events."""
    whole = rows.read_whole(session, session_id, events)
    if whole is None or not call.sees(whole.row.namespace, session_id):
        raise no_such_session(session_id)
    return whole


def find_expected(
    call: Call, session: Session, session_id: str, expected_version: int | None
) -> SessionRow:
    """The same as `find`, in the version that the caller has in mind."""
    row = find(call, session, session_id)
    _check_version(session_id, row.version, expected_version)
    return row


def change(
    call: Call,
    transaction: WriteTransaction,
    session_id: str,
    expected_version: int | None,
    *,
    events: int = 0,
) -> SessionRow:
    """Count a change, and as many events; returns the session as it is then.

    The row is changed before anything about it is known, in one statement: what is refused here or
    later is undone with the whole transaction.
    """
    changed = transaction.execute(rows.CHANGE, (events, call.now_us, session_id))
    row = _admitted(call, session_id, changed)
    _check_version(session_id, row.version - 1, expected_version)
    return row


def entered(
    call: Call, transaction: WriteTransaction, row: SessionRow, shared: str | None = None
) -> int:
    """Enter a change of a session into the journal, and into that of the app whose state changed;
    returns the number of the last entry."""
    if shared is not None:
        record(call, transaction, subject=row.id, namespace=shared)
    return record(
        call,
        transaction,
        subject=row.id,
        namespace=row.namespace,
        version_before=row.version - 1 or None,
        version_after=row.version,
    )


def no_such_session(session_id: str) -> NotFound:
    """The same for what never was, what is gone and what is not yours to see."""
    return NotFound(f"There is no session {session_id!r}.", session_id=session_id)


def _admitted(call: Call, session_id: str, found: list[Row]) -> SessionRow:
    if not found:
        raise no_such_session(session_id)
    row = SessionRow(*found[0])
    if not call.sees(row.namespace, session_id):
        raise no_such_session(session_id)
    call.require(row.namespace, session_id)
    return row


def _check_version(session_id: str, actual: int, expected: int | None) -> None:
    if expected is not None and expected != actual:
        raise VersionConflict(
            f"Session {session_id} is at version {actual}, not {expected}: read it again and "
            "repeat your change.",
            session_id=session_id,
            expected_version=expected,
            actual_version=actual,
        )
