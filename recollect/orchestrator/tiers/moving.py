"""Carrying a migration out: a bounded number of memories at a time, or one group.

Each step is one transaction and good by itself, so a run that is broken off has nothing half done:
what is left is still due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.as_seen import as_seen
from recollect.orchestrator.consolidation.lineage import DERIVED_FROM, link
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.runs import Item
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.tiers.planning import Summary

ROWS_AT_ONCE = 50
TO_WORKING = "to_working"
TO_LONGTERM = "to_longterm"
SUMMARISED = "summarised"
ARCHIVED = "archived"
CREATED = "created"
TIER_AFTER = {TO_WORKING: "medium", TO_LONGTERM: "long", SUMMARISED: "long"}

Still = Callable[[MemoryRow], bool]
"""Whether a memory that is read anew is to be moved all the same."""


class Moving:
    """Moves memories on, and sums groups up."""

    def __init__(
        self, writes: RecheckedWrites, store: MemoryStore, drafting: Drafting, clock: Clock
    ) -> None:
        self._writes = writes
        self._store = store
        self._drafting = drafting
        self._clock = clock

    async def move_on(
        self,
        call: Call,
        progress: Progress,
        rows: Sequence[MemoryRow],
        action: str,
        still: Still = lambda row: True,
    ) -> None:
        """Bring some memories into the next tier, or into the archive, as they are."""
        await self._writes.write(call, partial(self._move_all, call, progress, rows, action, still))
        failpoint("migrating")

    async def sum_up(
        self,
        call: Call,
        progress: Progress,
        summary: Summary,
        still: Still = lambda row: True,
    ) -> bool:
        """Write a summary and archive what it stands for; False and nothing if one of them was
        changed meanwhile, or is not to be moved any more."""
        embedded = await self._store.meanings.embed_one(meaning_of(summary.row))
        written = await self._writes.write(
            call, partial(self._sum_up, call, progress, summary, embedded, still)
        )
        failpoint("migrating")
        return written

    def _move_all(
        self,
        call: Call,
        progress: Progress,
        rows: Sequence[MemoryRow],
        action: str,
        still: Still,
        transaction: WriteTransaction,
    ) -> None:
        self._beat(progress, transaction)
        # What was changed since it was seen is of the moment again, and stays.
        fresh = [now for row in rows if (now := as_seen(call, transaction, row)) is not None]
        items = [
            self._moved(call, progress, row, action, transaction) for row in fresh if still(row)
        ]
        runs.enter(transaction, progress.run_id, items)

    def _sum_up(
        self,
        call: Call,
        progress: Progress,
        summary: Summary,
        embedded: Embedded,
        still: Still,
        transaction: WriteTransaction,
    ) -> bool:
        self._beat(progress, transaction)
        fresh = [as_seen(call, transaction, row) for row in summary.group]
        group = [row for row in fresh if row is not None and still(row)]
        if len(group) < len(fresh):
            return False
        self._store.insert(call, transaction, [summary.row], embedded)
        made = summary.row
        link(call, transaction, made.num, DERIVED_FROM, [row.num for row in group])
        items = [Item(progress.next(), made.num, CREATED, None, made.version)]
        items += [self._moved(call, progress, row, SUMMARISED, transaction) for row in group]
        runs.enter(transaction, progress.run_id, items)
        return True

    def _moved(
        self,
        call: Call,
        progress: Progress,
        row: MemoryRow,
        action: str,
        transaction: WriteTransaction,
    ) -> Item:
        changes: dict[str, Any] = {"tier": TIER_AFTER.get(action, row.tier)}
        if action in (SUMMARISED, ARCHIVED):
            changes["archived_us"] = max(call.now_us, row.updated_us + 1)
        new = self._drafting.refaded(row, msgspec.structs.replace(row, **changes))
        new = self._drafting.with_time_left(new, call.now_us)
        new = self._store.supersede(call, transaction, row, new)
        return Item(progress.next(), row.num, action, row.version, new.version)

    def _beat(self, progress: Progress, transaction: WriteTransaction) -> None:
        now_us = self._clock.now_us()
        runs.beat(transaction, progress.run_id, now_us, resumed=progress.resumed)
