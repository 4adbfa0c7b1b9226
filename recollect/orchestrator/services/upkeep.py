"""Upkeep of what is derived: vectors, the index of them, and the storage's own files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.maintenance.agreement import Agreement
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.vectors.late_embedding import LateEmbedding
from recollect.protocol import records
from recollect.protocol.errors import DeadlineExceeded, RecollectError, ShuttingDown
from recollect.protocol.operations import (
    BackfillEmbeddings,
    CheckIndex,
    MaintainIndex,
    OptimiseStorage,
)

ANSWER_S = 1.0
"""Left of the time of a call to answer it."""
SETTLE_S_MAX = 600.0
MERGE_STEPS_MAX = 200
MERGE_PAUSE_S = 0.005


class UpkeepService:
    """Sees to what can be made anew from the rows, beside everything else."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        store: MemoryStore,
        lexical: LexicalIndex,
        late: LateEmbedding,
        agreement: Agreement,
        validator: Validator,
        clock: Clock,
        draining: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._store = store
        self._lexical = lexical
        self._late = late
        self._agreement = agreement
        self._validator = validator
        self._clock = clock
        self._draining = draining

    @reads(BackfillEmbeddings)
    async def backfill_embeddings(
        self, call: Call, operation: BackfillEmbeddings
    ) -> records.EmbeddingsBackfilled:
        before = await self._storage.read(self._late.waiting)
        before += await self._late.find_forgotten()
        done, reason = 0, None
        try:
            done = await self._late.work_off(operation.limit, lambda: self._left_s(call) <= 0)
        except RecollectError as error:
            reason = error.message
        waiting = await self._storage.read(self._late.waiting)
        if waiting and reason is None:
            reason = self._late.last_error or (
                "more wait than the limit; the same again goes on"
                if done >= operation.limit
                else "the embedder refused them, or there was no time left"
            )
        return {
            "status": "success",
            # Some may have been embedded in the background meanwhile.
            "embedded": max(done, before - waiting),
            "waiting": waiting,
            "reason": reason if waiting else None,
        }

    @reads(MaintainIndex)
    async def maintain_index(self, call: Call, operation: MaintainIndex) -> records.IndexMaintained:
        index = self._store.meanings.current.index
        if operation.dry_run:
            upkeep = await to_the_end(index.upkeep_due)
        else:
            within_s = max(0.0, min(SETTLE_S_MAX, self._left_s(call)))
            upkeep = await to_the_end(index.maintain, within_s)
        described = await self._storage.read(lambda session: index.seen_by(session).describe())
        return {
            "status": "success",
            "sealed": upkeep.sealed,
            "merged": upkeep.merged,
            "compacted": upkeep.compacted,
            "segments": len(described["segments"]),
            "vectors": described["vectors"],
            "complete": upkeep.complete,
            "dry_run": operation.dry_run,
        }

    @reads(CheckIndex)
    async def check_index(self, call: Call, operation: CheckIndex) -> records.IndexChecked:
        go_on = partial(self._check_time, call)
        found = await self._agreement.check(call, repair=operation.repair, go_on=go_on)
        differ = found.missing + found.surplus
        if found.repaired:
            # What was set right is looked at again.
            left = await self._agreement.check(call, repair=False, go_on=go_on)
            differ = left.missing + left.surplus
        return {
            "status": "success",
            "memories": found.memories,
            "vectors": found.vectors,
            "waiting": found.waiting,
            "missing": found.missing,
            "surplus": found.surplus,
            "repaired": found.repaired,
            "agrees": differ == 0,
        }

    @reads(OptimiseStorage)
    async def optimise_storage(
        self, call: Call, operation: OptimiseStorage
    ) -> records.StorageOptimised:
        steps, more = 0, True
        while more and steps < MERGE_STEPS_MAX and self._left_s(call) > 0:
            self._check_time(call)
            more = await self._writes.write(call, partial(self._lexical.expunge, begin=False))
            steps += more
            await asyncio.sleep(MERGE_PAUSE_S)
        done = await self._storage.optimise()
        return {
            "status": "success",
            "before_bytes": done["before_bytes"],
            "after_bytes": done["after_bytes"],
            "log_bytes": done["log_bytes"],
            "free_bytes": done["free_bytes"],
            "merged_steps": steps,
            "complete": not more,
        }

    def _left_s(self, call: Call) -> float:
        return (call.deadline_us - self._clock.now_us()) / 1_000_000 - ANSWER_S

    def _check_time(self, call: Call) -> None:
        if self._draining():
            raise ShuttingDown("The orchestrator is shutting down; the same again goes on.")
        if self._clock.now_us() >= call.deadline_us:
            raise DeadlineExceeded("There was no time for all of it: ask with a longer timeout.")
