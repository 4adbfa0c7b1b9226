"""Sessions: the conversations and runs that memories come from."""

from __future__ import annotations

from collections.abc import Callable

from recollect.orchestrator.calls import Call, record, writes
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import CreateSession

INSERT_SESSION = """
INSERT INTO sessions
    (id, user_id, session_type, metadata, status, version, created_us, updated_us, created_by)
VALUES (?, ?, ?, ?, 'created', 1, ?, ?, ?)
"""


class SessionService:
    """Begins sessions."""

    def __init__(self, validator: Validator, ids: IdSource) -> None:
        self._validator = validator
        self._ids = ids

    @writes(CreateSession)
    def create_session(
        self, call: Call, operation: CreateSession
    ) -> Callable[[WriteTransaction], records.SessionCreated]:
        self._validator.text("user_id", operation.user_id, "key_chars_max")
        self._validator.text("session_type", operation.session_type, "key_chars_max")
        metadata = self._validator.metadata(operation.session_metadata, "session_metadata")

        def write(transaction: WriteTransaction) -> records.SessionCreated:
            session_id = self._ids.new()
            transaction.execute(
                INSERT_SESSION,
                (
                    session_id,
                    operation.user_id,
                    operation.session_type,
                    metadata,
                    call.now_us,
                    call.now_us,
                    call.author,
                ),
            )
            seq = record(call, transaction, subject=session_id, version_after=1)
            return {
                "status": "success",
                "session_id": session_id,
                "user_id": operation.user_id,
                "session_type": operation.session_type,
                "app": operation.app,
                "session_status": "created",
                "version": 1,
                "created_at": to_iso(call.now_us),
                "seq": seq,
            }

        return write
