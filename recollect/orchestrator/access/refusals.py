"""Denied attempts on their way into the audit log.

One entry a request, whatever it asked for. They are written beside the answer and not before it;
when they come faster than they can be written, they are counted and one entry tells how many.
"""

from __future__ import annotations

import asyncio

import structlog

from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

WAITING_MAX = 1_000
DENIED = "denied"


class RefusalLog:
    """Writes what was denied. Lives on the event loop."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting: set[asyncio.Future[int]] = set()
        self._uncounted = 0

    def note(self, call: Call) -> None:
        """Enter what a call may not have."""
        first = call.refusals[0]
        detail = first.detail
        if len(call.refusals) > 1:
            detail += f", and {len(call.refusals) - 1} more"
        self._write(call, first.subject, first.namespace, detail)

    def _write(self, call: Call, subject: str, namespace: str | None, detail: str) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._uncounted += 1
            return
        if self._uncounted:
            detail += f"; {self._uncounted} others were not entered"
            self._uncounted = 0

        def write(transaction: WriteTransaction) -> int:
            return record(
                call,
                transaction,
                subject=subject,
                namespace=namespace,
                outcome=DENIED,
                detail=detail,
            )

        try:
            writing = self._storage.write(write)
        except RecollectError as error:
            self._uncounted += 1
            log.warning("A denial was not entered.", action="audit", reason=error.message)
            return
        self._waiting.add(writing)
        writing.add_done_callback(self._written)

    def _written(self, writing: asyncio.Future[int]) -> None:
        self._waiting.discard(writing)
        if not writing.cancelled() and (error := writing.exception()) is not None:
            self._uncounted += 1
            log.warning("A denial was not entered.", action="audit", reason=str(error))
