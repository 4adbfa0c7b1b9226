"""One call of a sync: what is gone, new or changed in a folder, worked off until the time is up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.documents import rows
from recollect.orchestrator.documents.indexing import AT_ONCE, Indexing, Wanted
from recollect.orchestrator.documents.rows import DocumentRow
from recollect.orchestrator.documents.store import DocumentStore
from recollect.orchestrator.documents.walking import FoundFile, Walk
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import RecollectError, Unauthenticated

FAILURES_SHOWN_MAX = 100
NOTED_MAX = 1_000
"""Files that one call notes as waiting when its time is up."""


class Job(msgspec.Struct, frozen=True):
    """A file to look into."""

    file: FoundFile
    known: DocumentRow | None


class Workshop(msgspec.Struct, frozen=True):
    """What every sync works with."""

    storage: Storage
    writes: RecheckedWrites
    documents: DocumentStore
    indexing: Indexing
    clock: Clock
    stopping: Callable[[], bool]
    """Whether the orchestrator is about to end: then nothing more is begun."""


class Sync:
    """A folder as it was found, beside what is known of it. Lives on the event loop."""

    def __init__(
        self,
        workshop: Workshop,
        call: Call,
        namespace: str,
        walk: Walk,
        known: list[DocumentRow],
        until_us: int,
    ) -> None:
        self._workshop = workshop
        self._call = call
        self._namespace = namespace
        self._walk = walk
        self._until_us = until_us
        self._begun = False
        self._at_work = 0
        self._broken_off: RecollectError | None = None
        self._unchanged = self._synced = self._failed = self._removed = 0
        self._failures: list[DocumentRow] = []
        self._gone = deque(row for row in known if self._is_gone(row))
        # What is new or has changed; and what failed before for some outer reason, to try again.
        self._jobs: deque[Job] = deque()
        self._again: deque[Job] = deque()
        by_source = {row.source: row for row in known}
        for file in walk.files:
            self._sort(file, by_source.get(file.place.source))

    def _is_gone(self, row: DocumentRow) -> bool:
        folder = self._walk.top.source.rstrip("/")
        return self._walk.missed(row.source.removeprefix(f"{folder}/").split("/"))

    def _sort(self, file: FoundFile, row: DocumentRow | None) -> None:
        if row is None:
            self._jobs.append(Job(file, None))
        elif self._workshop.indexing.is_current(row, file.size, file.modified_ns):
            if row.status == rows.SYNCED:
                self._unchanged += 1
            else:
                self._note_failure(row)
        elif row.error is not None and row.size_bytes == file.size and row.modified_ns is None:
            self._again.append(Job(file, row))
        else:
            self._jobs.append(Job(file, row))

    def _note_failure(self, row: DocumentRow) -> None:
        self._failed += 1
        if len(self._failures) < FAILURES_SHOWN_MAX:
            self._failures.append(row)

    async def work(self) -> None:
        """Work until all is done or the time is up; what was begun then is still finished."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())
        if self._broken_off is None:
            await self._note_waiting()
        elif not (self._synced or self._removed):
            raise self._broken_off

    async def _work(self) -> None:
        while self._broken_off is None and (self._gone or self._jobs or self._again):
            if not self._has_time():
                return
            self._at_work += 1
            try:
                if self._gone:
                    await self._remove(self._gone.popleft())
                else:
                    await self._index((self._jobs or self._again).popleft())
            except RecollectError as error:
                # It is not the document's fault, and the next one would fare no better.
                self._broken_off = error
            finally:
                self._at_work -= 1

    def _has_time(self) -> bool:
        """Whether more may be begun: the first always, so that every call comes further."""
        workshop = self._workshop
        late = workshop.stopping() or workshop.clock.now_us() >= self._until_us
        first, self._begun = not self._begun, True
        return first or not late

    async def _remove(self, row: DocumentRow) -> None:
        call, workshop = self._now(), self._workshop

        def write(transaction: WriteTransaction) -> None:
            # Somebody may have taken it away since.
            if transaction.execute(rows.FIND, (row.id,)):
                workshop.documents.remove(call, transaction, row)

        await workshop.writes.write(call, write)
        self._removed += 1

    async def _index(self, job: Job) -> None:
        call, file, known = self._now(), job.file, job.known
        wanted = Wanted(self._namespace)
        if known is not None:
            wanted = Wanted(self._namespace, None, known.document_type, known.trust)
        indexing = self._workshop.indexing
        if (unfit := indexing.unfit(call, self._namespace, file.place, file.size)) is not None:
            return self._note_failure(unfit)
        try:
            written = await indexing.file(call, wanted, file.place, known)
        except RecollectError as error:
            if error.retryable or isinstance(error, Unauthenticated):
                self._jobs.appendleft(job)
                raise
            failed = await indexing.failed(
                call, wanted, file.place, error, size=file.size, modified_ns=file.modified_ns
            )
            return self._note_failure(failed)
        if written is None:
            self._unchanged += 1
        else:
            self._synced += 1

    async def _note_waiting(self) -> None:
        """Let it be seen which files are still to be read."""
        left = [job.file for job in self._jobs if _is_news(job)][:NOTED_MAX]
        if left:
            call, wanted, indexing = self._now(), Wanted(self._namespace), self._workshop.indexing
            files = [
                (wanted, file.place, file.size)
                for file in left
                if indexing.unfit(call, self._namespace, file.place) is None
            ]
            await indexing.waiting(call, files)

    def _now(self) -> Call:
        return msgspec.structs.replace(self._call, now_us=self._workshop.clock.now_us())

    async def standing(self) -> records.DocumentsSynced:
        """How far it is; asked for once."""
        for job in self._again:
            assert job.known is not None
            self._note_failure(job.known)
        failures = list(self._failures)

        def read(session: Session) -> list[records.DocumentRecord]:
            return [rows.record_of(row, rows.count_chunks(session, row)) for row in failures]

        return {
            "status": "success",
            "root": self._walk.top.source,
            "complete": not (self._jobs or self._gone or self._at_work),
            "files": len(self._walk.files),
            "done": self._unchanged + self._synced + self._failed,
            "synced": self._synced,
            "unchanged": self._unchanged,
            "failed": self._failed,
            "removed": self._removed,
            "failures": await self._workshop.storage.read(read),
        }


def _is_news(job: Job) -> bool:
    """Whether it is not written down already that a file waits."""
    return job.known is None or job.known.status == rows.SYNCED
