"""Embedding all memories anew with another model, while searches go on with the present one.

The new vectors go into a table and an index of their own. When they have caught up, both take the
place of the old ones: the tables in one transaction, the indexes at one moment on the event loop. A
restart goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import structlog

from recollect.orchestrator.embedding.choosing import ACTIVE, TARGET
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning, Meanings
from recollect.orchestrator.embedding.specs import EmbedderSpec
from recollect.orchestrator.index_loading import load_index
from recollect.orchestrator.memory_store import EMBED_LATER_AGAIN, meaning_of
from recollect.orchestrator.rows import COLUMNS, MemoryRow
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.properties import set_property
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

PAGE_TEXTS = 256
CATCH_UP_ROWS = 256
CLEAR_ROWS = 2_000
BEHIND_MAX = 1_000_000
CLEAR_PAUSE_S = 0.02
RETRY_S_MIN = 1.0
RETRY_S_MAX = 60.0

NEXT = f"""
SELECT {COLUMNS} FROM memories WHERE num > ? AND deleted_us IS NULL ORDER BY num LIMIT ?
"""
# What changed since its new vector was made, or has none yet.
BEHIND = """
SELECT v.num, v.seq FROM vectors v LEFT JOIN shadow_vectors s ON s.num = v.num
WHERE v.seq > ? AND (s.num IS NULL OR s.seq < v.seq) ORDER BY v.seq LIMIT ?
"""
LIVING = f"SELECT {COLUMNS} FROM memories WHERE num = ? AND deleted_us IS NULL"
KEEP = """
INSERT INTO shadow_vectors (num, model, vector, seq) VALUES (?, ?, ?, ?)
ON CONFLICT (num) DO UPDATE SET
    model = excluded.model, vector = excluded.vector, seq = excluded.seq
"""
STILL_LIVING = "SELECT 1 FROM memories WHERE num = ? AND deleted_us IS NULL"
FORGET = "DELETE FROM shadow_vectors WHERE num = ?"
SWAP = (
    "ALTER TABLE vectors RENAME TO retired_vectors",
    "ALTER TABLE shadow_vectors RENAME TO vectors",
    "ALTER TABLE retired_vectors RENAME TO shadow_vectors",
)
CLEAR = """
DELETE FROM shadow_vectors WHERE num IN (SELECT num FROM shadow_vectors ORDER BY num LIMIT ?)
RETURNING 1
"""
OTHERS = "SELECT num FROM vectors WHERE seq > ? AND model <> ?"
FOREIGN = "SELECT 1 FROM shadow_vectors WHERE model <> ? LIMIT 1"
LAST = "SELECT coalesce(max(num), 0) FROM shadow_vectors"
COUNT = "SELECT count(*) FROM vectors"


class Reembedding:
    """At most one exchange of the model at a time."""

    def __init__(self, storage: Storage, meanings: Meanings) -> None:
        self._storage = storage
        self._meanings = meanings
        self._task: asyncio.Task[None] | None = None
        self._status: dict[str, Any] = {"state": "idle"}
        self._switched_seq = 0

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def describe(self) -> dict[str, Any]:
        """How far it is, for `stats`."""
        return dict(self._status)

    def start(self, spec: EmbedderSpec, target: Meaning) -> None:
        """Begin, or go on after a restart; the caller has seen to it that none is under way."""
        self._status = {"state": "running", "target": target.model, "done": 0, "total": None}
        self._task = asyncio.create_task(self._persist(spec, target))

    async def tidy(self) -> None:
        """Remove what an exchange left behind that was not finished, or was given up."""
        try:
            await self._clear()
        except RecollectError as error:
            log.warning("Old vectors are still there.", action="reembed", reason=error.message)

    async def stop(self) -> None:
        """Stop where it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _persist(self, spec: EmbedderSpec, target: Meaning) -> None:
        retry_s = RETRY_S_MIN
        while True:
            try:
                old = await self._run(spec, target)
                break
            except RecollectError as error:
                self._status |= {"state": "waiting", "reason": error.message}
                log.warning("Re-embedding waits.", action="reembed", reason=error.message)
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, RETRY_S_MAX)
                self._status["state"] = "running"
            except Exception:
                self._status |= {"state": "failed"}
                log.exception("Re-embedding failed.", action="reembed")
                return
        await self._put_away(old)

    async def _run(self, spec: EmbedderSpec, target: Meaning) -> Meaning:
        """Bring the new model into use; returns the old one."""
        storage = self._storage
        await storage.write(lambda transaction: set_property(transaction, TARGET, spec.to_text()))
        if await storage.read(lambda s: bool(s.execute(FOREIGN, (target.model,)))):
            await self._clear()
        await load_index(storage, target, "shadow_vectors")
        [(total,)] = await storage.read(lambda s: s.execute(COUNT))
        [(after,)] = await storage.read(lambda s: s.execute(LAST))
        self._status |= {"total": total, "done": len(target.index)}
        log.info("Re-embedding begins.", action="reembed", model=target.model, memories=total)
        while True:
            seq, rows = await storage.read(partial(_next, after))
            if not rows:
                break
            await self._embed(target, seq, rows)
            after = rows[-1].num
        since_seq = await self._catch_up(target)
        return await self._switch(spec, target, since_seq)

    async def _catch_up(self, target: Meaning) -> int:
        """Embed what changed meanwhile; returns the sequence number up to which all is done."""
        since_seq = 0
        while True:
            seq, reached_seq, rows = await self._storage.read(partial(_behind, since_seq))
            await self._embed(target, seq, rows)
            if reached_seq is None:
                return seq
            since_seq = reached_seq

    async def _embed(self, target: Meaning, seq: int, rows: list[MemoryRow]) -> None:
        if not rows:
            return
        vectors = await target.embedding.documents([meaning_of(row) for row in rows])
        kept = await self._storage.write(partial(_keep, target.model, seq, rows, vectors))
        if kept:
            chosen = [place for place, row in enumerate(rows) if row.num in kept]
            # Off the loop, because it writes a segment now and then.
            await asyncio.to_thread(
                target.index.load,
                np.array([rows[place].num for place in chosen], dtype=np.int64),
                np.full(len(chosen), seq, dtype=np.int64),
                vectors[chosen],
            )
        self._status["done"] = len(target.index)

    async def _switch(self, spec: EmbedderSpec, target: Meaning, since_seq: int) -> Meaning:
        old = self._meanings.current
        switched = partial(_switch, spec, target, since_seq, self._exchange(target))
        self._switched_seq = await self._storage.write(switched)
        log.info("The new model is in use.", action="reembed", model=target.model)
        return old

    async def _put_away(self, old: Meaning) -> None:
        """Remove what the exchange left behind. If that fails, the next start goes on with it."""
        target = self._meanings.current
        self._status |= {"state": "clearing", "done": len(target.index)}
        try:
            # Written between the commit and the exchange: with vectors of the old model.
            await self._storage.write(partial(_sweep, self._switched_seq, target))
            await old.embedding.retire()
            await asyncio.to_thread(old.index.discard)
            await self._clear()
        except RecollectError as error:
            log.warning("The old vectors are still there.", action="reembed", reason=error.message)
        self._status["state"] = "done"

    def _exchange(self, target: Meaning) -> Callable[[], None]:
        def exchange() -> None:
            self._meanings.current = target

        return exchange

    async def _clear(self) -> None:
        """Empty the shadow table, a bounded number at a time."""
        while await self._storage.write(lambda t: len(t.execute(CLEAR, (CLEAR_ROWS,)))):
            await asyncio.sleep(CLEAR_PAUSE_S)


def _next(after: int, session: Session) -> tuple[int, list[MemoryRow]]:
    """Rows, and the sequence number of the moment at which they were as they are."""
    [(seq, _)] = session.execute(READ_LEDGER)
    return int(seq), [MemoryRow(*row) for row in session.execute(NEXT, (after, PAGE_TEXTS))]


def _behind(since_seq: int, session: Session) -> tuple[int, int | None, list[MemoryRow]]:
    """A page of what is behind, the number it reaches to, and None there if it is the last."""
    [(seq, _)] = session.execute(READ_LEDGER)
    found = session.execute(BEHIND, (since_seq, CATCH_UP_ROWS))
    rows = [MemoryRow(*row) for num, _ in found for row in session.execute(LIVING, (num,))]
    # Several may share a number: the page's last one is looked at again.
    reached_seq = int(found[-1][1]) - 1 if len(found) == CATCH_UP_ROWS else None
    return int(seq), reached_seq, rows


def _keep(
    model: str, seq: int, rows: list[MemoryRow], vectors: Vectors, transaction: WriteTransaction
) -> set[int]:
    """Keep new vectors, except of memories that were deleted meanwhile; the numbers of the kept."""
    kept = {row.num for row in rows if transaction.execute(STILL_LIVING, (row.num,))}
    transaction.executemany(
        KEEP,
        [
            (row.num, model, vector.tobytes(), seq)
            for row, vector in zip(rows, vectors, strict=True)
            if row.num in kept
        ],
    )
    return kept


def _switch(
    spec: EmbedderSpec,
    target: Meaning,
    since_seq: int,
    exchange: Callable[[], None],
    transaction: WriteTransaction,
) -> int:
    """Exchange the tables; what is still behind is left to be embedded late."""
    behind = [num for num, _ in transaction.execute(BEHIND, (since_seq, BEHIND_MAX))]
    for num in behind:
        transaction.execute(FORGET, (num,))
        transaction.execute(EMBED_LATER_AGAIN, (num,))
    for statement in SWAP:
        transaction.execute(statement)
    set_property(transaction, ACTIVE, spec.to_text())
    set_property(transaction, TARGET, None)

    def after_commit() -> None:
        for num in behind:
            target.index.remove(num)
        exchange()

    transaction.after_commit.append(after_commit)
    return transaction.last_seq()


def _sweep(seq: int, target: Meaning, transaction: WriteTransaction) -> None:
    for (num,) in transaction.execute(OTHERS, (seq, target.model)):
        transaction.execute("DELETE FROM vectors WHERE num = ?", (num,))
        transaction.execute(EMBED_LATER_AGAIN, (num,))
