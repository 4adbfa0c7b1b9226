"""Bringing a whole folder of documents up to date, a part of it at each call."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from recollect.config.sharing import DocumentsSettings
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.documents import rows
from recollect.orchestrator.documents.patterns import Pattern
from recollect.orchestrator.documents.places import Place, Roots
from recollect.orchestrator.documents.syncing import Sync, Workshop
from recollect.orchestrator.documents.walking import Walk
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import Overloaded
from recollect.protocol.operations import SyncDocuments

RESERVE_PART = 4
RESERVE_US_MAX = 5_000_000
"""Of the time of a call, a part is kept back to finish what was begun, and never more than this."""
RETRY_AFTER_MS = 1_000


class DocumentSyncService:
    """Syncs folders. Lives on the event loop."""

    def __init__(
        self,
        workshop: Workshop,
        roots: Roots,
        validator: Validator,
        settings: DocumentsSettings,
    ) -> None:
        self._workshop = workshop
        self._roots = roots
        self._validator = validator
        self._settings = settings
        # One sync at a time in each namespace and folder; a lock lives while somebody uses it.
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    # Many writes, each of them whole: what one call has done, the next one finds done.
    @reads(SyncDocuments)
    async def sync_documents(self, call: Call, operation: SyncDocuments) -> records.DocumentsSynced:
        self._validator.namespace(operation.namespace)
        pattern = None if operation.pattern is None else Pattern(operation.pattern)
        top = await asyncio.to_thread(self._roots.place, operation.root, "root")
        span_us = call.deadline_us - call.now_us
        until_us = call.deadline_us - min(span_us // RESERVE_PART, RESERVE_US_MAX)
        lock = self._lock(operation.namespace, top)
        try:
            async with asyncio.timeout((until_us - call.now_us) / 1_000_000):
                await lock.acquire()
        except TimeoutError:
            raise Overloaded(
                f"Another sync of {top.source!r} is at work; try again shortly.",
                retry_after_ms=RETRY_AFTER_MS,
            ) from None
        try:
            walk = Walk(top, pattern, self._settings.files_max)
            await asyncio.to_thread(walk.go)
            known = await self._workshop.storage.read(
                lambda session: rows.below(session, operation.namespace, top.source)
            )
            return await Sync(
                self._workshop, call, operation.namespace, walk, known, until_us
            ).run()
        finally:
            lock.release()

    def _lock(self, namespace: str, top: Place) -> asyncio.Lock:
        lock = self._locks.get((namespace, top.source))
        if lock is None:
            lock = self._locks[namespace, top.source] = asyncio.Lock()
        return lock
