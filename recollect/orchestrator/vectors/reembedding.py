"""Embedding all memories anew with another model, while searches go on with the present one.

The new vectors go into a table and an index of their own. When they have caught up, both take the
place of the old ones: the tables in one transaction, the indexes at one moment on the event loop. A
restart goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
import structlog

from recollect.orchestrator.embedding.choosing import TARGET
from recollect.orchestrator.embedding.meaning import Meaning, Meanings
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.storage.properties import set_property
from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.orchestrator.vectors.indexes import VectorIndexes
from recollect.orchestrator.vectors.refused_texts import embedded_singly
from recollect.orchestrator.vectors.shadow_table import (
    COUNT,
    FOREIGN,
    LAST,
    behind_page,
    clear_some,
    gone,
    keep,
    next_page,
    sweep,
    switch_tables,
)
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

ANSWERED_WITHIN_S = 5.0
"""Whoever began before the exchange has so long to look into the old index."""
CLEAR_PAUSE_S = 0.02
RETRY_S_MIN = 1.0
RETRY_S_MAX = 60.0
DISCARDS_MAX = 20
"""Attempts to remove an index, over a quarter of an hour."""

Make = Callable[[], Awaitable[Meaning]]
"""Makes the meaning that is to come into use; it may not be possible yet."""


async def nobody(within_s: float) -> None:
    """No request is under way."""


class ExchangedElsewhere(Exception):
    """Another orchestrator has brought the model into use, or given it up."""


class Reembedding:
    """At most one exchange of the model at a time."""

    def __init__(self, storage: Storage, meanings: Meanings, indexes: VectorIndexes) -> None:
        self._storage = storage
        self._meanings = meanings
        self._indexes = indexes
        self.trouble: Trouble = unheard
        self.under_way: Callable[[float], Awaitable[None]] = nobody
        """Waits so many seconds at the most until the requests of this moment are answered."""
        self._task: asyncio.Task[None] | None = None
        self._status: dict[str, Any] = {"state": "idle"}
        self._switched_seq = 0
        # Whether the transaction that exchanges the models is under way, or done.
        self._switching = False
        # Held by whoever fills or empties the table of the new vectors.
        self._shadow = asyncio.Lock()

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def describe(self) -> dict[str, Any]:
        """How far it is, for `stats`."""
        return dict(self._status)

    def start(self, spec: EmbedderSpec, make: Make) -> None:
        """Begin, or go on after a restart; the caller has seen to it that none is under way."""
        self._switching = False
        self._status = {"state": "running", "target": spec.describe(), "done": 0, "total": None}
        self._task = asyncio.create_task(self._exchange_model(spec, make))

    async def tidy(self) -> None:
        """Remove what an exchange left behind that was not finished."""
        async with self._shadow:
            await self._tidy()

    async def _tidy(self) -> None:
        try:
            await self._clear(None)
        except RecollectError as error:
            log.warning("Old vectors are still there.", action="reembed", reason=error.message)
            self.trouble("reembedding_waits", error.message)

    async def give_up(self) -> bool:
        """Stay with the present model; whether it was not too late for that."""
        if self._switching and self._task is not None:
            await asyncio.wait([self._task])
            if self._switching:
                return False
        await self.stop()
        async with self._shadow:
            coming, self._meanings.coming = self._meanings.coming, None
            if coming is not None:
                self._meanings.leaving.append(coming)
            await self._storage.write(lambda transaction: set_property(transaction, TARGET, None))
            self._status = {"state": "idle"}
            if coming is not None:
                await coming.embedding.retire()
                await self._discard(coming)
            await self._tidy()
        return True

    async def stop(self) -> None:
        """Stop where it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _exchange_model(self, spec: EmbedderSpec, make: Make) -> None:
        async with self._shadow:
            await self._persist(spec, make)

    async def _persist(self, spec: EmbedderSpec, make: Make) -> None:
        """Try until it is done: a model that is away, or a full disk, may be mended any time."""
        retry_s = RETRY_S_MIN
        target: Meaning | None = None
        prepared = False
        while True:
            try:
                if target is None:
                    target = await make()
                    if target.model == self._meanings.current.model:
                        return await self._settle_for(target)
                if not prepared:
                    await self._prepare(spec, target)
                    prepared = True
                old = await self._run(spec, target)
                break
            except ExchangedElsewhere:
                assert target is not None
                return await self._leave(target)
            except RecollectError as error:
                self._status |= {"state": "waiting", "reason": error.message}
                log.warning("Re-embedding waits.", action="reembed", reason=error.message)
                self.trouble("reembedding_waits", error.message)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
                self._status["state"] = "running"
            except Exception as error:
                self._status |= {"state": "failed"}
                log.exception("Re-embedding failed.", action="reembed")
                self.trouble("reembedding_failed", f"Re-embedding failed: {error!r}.")
                return
        await self._put_away(old)

    async def _settle_for(self, target: Meaning) -> None:
        """Nothing need be done: the model is in use already."""
        await self._storage.write(lambda transaction: set_property(transaction, TARGET, None))
        await target.embedding.retire()
        self._status = {"state": "idle"}

    async def _leave(self, target: Meaning) -> None:
        """Another orchestrator did it; which model is in use is noticed by who follows it."""
        self._meanings.coming = None
        self._switching = False
        self._status = {"state": "idle"}
        await target.embedding.retire()

    async def _prepare(self, spec: EmbedderSpec, target: Meaning) -> None:
        storage = self._storage
        await storage.write(lambda transaction: set_property(transaction, TARGET, spec.to_text()))
        if await storage.read(lambda s: bool(s.execute(FOREIGN, (target.model,)))):
            await self._clear(spec)
        # Whatever is deleted from now on, the index hears of.
        self._meanings.coming = target
        await self._indexes.load(storage, target, "shadow_vectors")
        [(total,)] = await storage.read(lambda s: s.execute(COUNT))
        done = await self._count(target)
        self._status |= {"target": target.model, "total": total, "done": done}
        log.info("Re-embedding begins.", action="reembed", model=target.model, memories=total)

    async def _run(self, spec: EmbedderSpec, target: Meaning) -> Meaning:
        """Bring the new model into use; returns the old one."""
        [(after,)] = await self._storage.read(lambda s: s.execute(LAST))
        while True:
            seq, rows = await self._storage.read(partial(next_page, after))
            if not rows:
                break
            await self._embed(spec, target, seq, rows)
            after = rows[-1].num
        since_seq = await self._catch_up(spec, target)
        return await self._switch(spec, target, since_seq)

    async def _catch_up(self, spec: EmbedderSpec, target: Meaning) -> int:
        """Embed what changed meanwhile; returns the sequence number up to which all is done."""
        since_seq = 0
        while True:
            seq, reached_seq, rows = await self._storage.read(partial(behind_page, since_seq))
            await self._embed(spec, target, seq, rows)
            if reached_seq is None:
                return seq
            since_seq = reached_seq

    async def _embed(
        self, spec: EmbedderSpec, target: Meaning, seq: int, rows: list[MemoryRow]
    ) -> None:
        made = await embedded_singly(target.embedding, rows)
        if not made:
            return
        kept = await self._storage.write(partial(keep, spec, target.model, seq, made))
        if kept is None:
            raise ExchangedElsewhere
        chosen = [(row, pooled) for row, pooled in made if row.num in kept]
        if chosen:
            # Off the loop, because it writes a segment now and then.
            await to_the_end(
                target.index.load,
                np.array([row.num for row, _ in chosen], dtype=np.int64),
                np.full(len(chosen), seq, dtype=np.int64),
                np.stack([pooled.vector for _, pooled in chosen]),
            )
            # Whatever is deleted from now on, the index hears of; this is what went just before.
            nums = [row.num for row, _ in chosen]
            for num in await self._storage.read(partial(gone, nums)):
                target.index.remove(num)
            total = max(self._status["total"], self._status["done"])
            self._status["done"] = min(total, self._status["done"] + len(chosen))

    async def _count(self, meaning: Meaning) -> int:
        return await self._storage.read(lambda s: meaning.index.seen_by(s).count())

    async def _switch(self, spec: EmbedderSpec, target: Meaning, since_seq: int) -> Meaning:
        old = self._meanings.current
        switched = partial(switch_tables, spec, target, since_seq, self._exchange(target))
        self._switching = True
        write = self._storage.write(switched)
        try:
            # Whoever stops this must not find the models exchanged behind their back.
            switched_seq = await asyncio.shield(write)
        except asyncio.CancelledError:
            await asyncio.wait([write])
            raise
        except RecollectError:
            self._switching = False
            raise
        if switched_seq is None:
            raise ExchangedElsewhere
        self._switched_seq = switched_seq
        log.info("The new model is in use.", action="reembed", model=target.model)
        return old

    async def _put_away(self, old: Meaning) -> None:
        """Remove what the exchange left behind. If that fails, the next start goes on with it."""
        target = self._meanings.current
        self._status["state"] = "clearing"
        try:
            self._status["done"] = await self._count(target)
            # Written between the commit and the exchange: with vectors of the old model.
            await self._storage.write(partial(sweep, self._switched_seq, target))
        except RecollectError as error:
            log.warning(
                "Some vectors are of the old model.", action="reembed", reason=error.message
            )
        await old.embedding.retire()
        # Those who have their query's vector are about to look into the old index: it must not be
        # empty by then, or they find nothing and cannot tell.
        await self.under_way(ANSWERED_WITHIN_S)
        await self._discard(old)
        await self._tidy()
        self._status["state"] = "done"

    async def _discard(self, meaning: Meaning) -> None:
        """Remove the index of a meaning that is not used any more. Until that is done no purge is
        finished, so one failure is not the end of it."""
        retry_s = RETRY_S_MIN
        for attempt in range(1, DISCARDS_MAX + 1):
            try:
                await self._indexes.discard(self._storage, meaning)
            except RecollectError as error:
                log.warning("The old index is still there.", action="reembed", reason=error.message)
                self.trouble("reembedding_waits", error.message)
                if attempt == DISCARDS_MAX:
                    raise
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
            else:
                self._meanings.leaving.remove(meaning)
                return

    def _exchange(self, target: Meaning) -> Callable[[], None]:
        def exchange() -> None:
            self._meanings.leaving.append(self._meanings.current)
            self._meanings.current, self._meanings.coming = target, None

        return exchange

    async def _clear(self, target: EmbedderSpec | None) -> None:
        """Empty the shadow table, a bounded number at a time, while it is for this target."""
        while await self._storage.write(partial(clear_some, target)):
            await asyncio.sleep(CLEAR_PAUSE_S)
