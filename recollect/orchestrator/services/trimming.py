"""Trimming the journal: the oldest entries go, and the rest can still be verified."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call, reads, record
from recollect.orchestrator.maintenance.ages import DAY_US, Ages
from recollect.orchestrator.storage import journal_trimming as trimming
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import ShuttingDown
from recollect.protocol.operations import TrimJournal

ENTRIES_AT_ONCE = 1_000
"""So that nobody's write waits for long."""


class TrimmingService:
    """Takes away old entries, a bounded number a transaction."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        ages: Ages,
        draining: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._ages = ages
        self._draining = draining

    @reads(TrimJournal)
    async def trim_journal(self, call: Call, operation: TrimJournal) -> records.JournalTrimmed:
        before_us = self._ages.before_us(call.now_us, int(operation.older_than_days * DAY_US))
        limit = operation.limit
        if operation.dry_run:
            old = await self._storage.read(
                lambda session: trimming.oldest(session, before_us, limit)
            )
            removed = old.count
        else:
            removed = 0
            while True:
                if self._draining():
                    raise ShuttingDown("The orchestrator is shutting down; the rest is kept.")
                at_once = min(ENTRIES_AT_ONCE, limit - removed)
                old = await self._writes.write(call, partial(_trim, call, before_us, at_once))
                removed += old.count
                if old.complete or removed >= limit:
                    break
        return {
            "status": "success",
            "removed": removed,
            "kept_from_seq": old.seq + 1,
            "complete": old.complete,
            "dry_run": operation.dry_run,
        }


def _trim(call: Call, before_us: int, limit: int, transaction: WriteTransaction) -> trimming.Oldest:
    old = trimming.oldest(transaction, before_us, limit)
    if old.count:
        trimming.remove(transaction, old)
        record(
            call,
            transaction,
            subject=trimming.subject_of(old.seq),
            operation=trimming.TRIMMING,
            detail=trimming.detail_of(old.head),
        )
    return old
