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
from recollect.protocol.operations import SyncDocuments

RESERVE_PART = 4
RESERVE_US_MAX = 5_000_000
"""Of the time of a call, a part is kept back to finish what was begun, and never more than this."""
PATIENCE_S_MIN = 2.0
"""So long a call waits for what it has begun, be its deadline nearer: every call comes further."""


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
            # A document takes long, or somebody else syncs here too: say how far it is.
            return await (await self._look(call, operation, top, pattern, until_us)).standing()
        try:
            sync = await self._look(call, operation, top, pattern, until_us)
            work = asyncio.ensure_future(sync.work())
        except BaseException:
            lock.release()
            raise
        work.add_done_callback(lambda done: lock.release())
        # Nobody may be left to hear how it ended; the next call finds what is missing.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        # What takes longer than the call goes on by itself, and the next call waits for it.
        left_s = (call.deadline_us - self._workshop.clock.now_us()) / 1_000_000
        patience_s = left_s - min(span_us // RESERVE_PART, RESERVE_US_MAX) / 2_000_000
        await asyncio.wait([work], timeout=max(patience_s, PATIENCE_S_MIN))
        if work.done():
            work.result()
        return await sync.standing()

    async def _look(
        self,
        call: Call,
        operation: SyncDocuments,
        top: Place,
        pattern: Pattern | None,
        until_us: int,
    ) -> Sync:
        """The folder as it is, beside what is known of it."""
        walk = Walk(top, pattern, self._settings.files_max)
        await asyncio.to_thread(walk.go)
        known = await self._workshop.storage.read(
            lambda session: rows.below(session, operation.namespace, top.source)
        )
        return Sync(self._workshop, call, operation.namespace, walk, known, until_us)

    def _lock(self, namespace: str, top: Place) -> asyncio.Lock:
        lock = self._locks.get((namespace, top.source))
        if lock is None:
            lock = self._locks[namespace, top.source] = asyncio.Lock()
        return lock
