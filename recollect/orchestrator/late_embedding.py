"""Memories that were stored without a vector get theirs when the embedder can make it."""

from __future__ import annotations

import asyncio
from functools import partial

import structlog

from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memory_store import EMBED_LATER_AGAIN, MemoryStore, meaning_of
from recollect.orchestrator.rows import JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.storage.interface import Row, Session, Storage, WriteTransaction
from recollect.protocol.errors import EmbedderUnavailable, Overloaded, RecollectError

log = structlog.get_logger()

IDLE_S = 0.5
PAUSE_S_MIN = 0.5
PAUSE_S_MAX = 30.0
PAGE_TEXTS = 256
SEARCH_ROWS = 20_000
SEARCH_PAUSE_S = 0.02

WAITING = f"""
SELECT {JOINED_COLUMNS} FROM unembedded u JOIN memories m ON m.num = u.num
WHERE u.num > ? AND m.deleted_us IS NULL ORDER BY u.num LIMIT ?
"""
COUNT = "SELECT count(*) FROM unembedded"
# A page by its place among the numbers, so that each look costs the same.
FORGOTTEN = """
SELECT num FROM (SELECT num, deleted_us FROM memories WHERE num > ? ORDER BY num LIMIT ?) AS page
WHERE deleted_us IS NULL
  AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.num = page.num)
  AND NOT EXISTS (SELECT 1 FROM unembedded u WHERE u.num = page.num)
"""
PAGE_END = "SELECT max(num) FROM (SELECT num FROM memories WHERE num > ? ORDER BY num LIMIT ?) AS p"


class LateEmbedding:
    """Works through the memories that wait for a vector, for as long as it runs."""

    def __init__(self, storage: Storage, store: MemoryStore) -> None:
        self._storage = storage
        self._store = store
        self.last_error: str | None = None
        # Up to here the waiting ones were tried in this round; one that fails is passed over.
        self._tried_num = 0

    async def run(self) -> None:
        """Embed what waits, whenever something does; patiently while the embedder is away."""
        await self._find_forgotten()
        pause_s = PAUSE_S_MIN
        while True:
            try:
                done = await self._step()
                pause_s, self.last_error = PAUSE_S_MIN, None
                if not done:
                    await asyncio.sleep(IDLE_S)
            except RecollectError as error:
                if self.last_error is None:
                    log.warning(
                        "Memories wait for their vectors.",
                        action="embed_late",
                        reason=error.message,
                    )
                self.last_error = error.message
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def waiting(self, session: Session) -> int:
        """How many memories have no vector yet."""
        [(count,)] = session.execute(COUNT)
        return int(count)

    async def _step(self) -> int:
        params = (self._tried_num, PAGE_TEXTS)
        found = await self._storage.read(lambda session: session.execute(WAITING, params))
        if not found:
            self._tried_num = 0
            return 0
        rows = [MemoryRow(*row) for row in found]
        meaning = self._store.meanings.current
        texts = [meaning_of(row) for row in rows]
        try:
            vectors = await meaning.embedding.documents(texts)
        except (EmbedderUnavailable, Overloaded):
            # Perhaps one text is to blame: alone, it holds up no other.
            rows, texts = rows[:1], texts[:1]
            self._tried_num = rows[0].num
            vectors = await meaning.embedding.documents(texts)
        await self._storage.write(
            partial(self._keep, rows, Embedded(meaning, texts, list(vectors)))
        )
        return len(rows)

    def _keep(
        self, rows: list[MemoryRow], embedded: Embedded, transaction: WriteTransaction
    ) -> None:
        for place, row in enumerate(rows):
            self._store.embedded_late(transaction, row.num, row.seq, embedded.chosen([place]))

    async def _find_forgotten(self) -> None:
        """Notice memories that neither have a vector nor wait for one; there should be none."""
        after, found = 0, 0
        while True:
            params = (after, SEARCH_ROWS)
            forgotten, last = await self._storage.read(partial(_page, params))
            if forgotten:
                found += len(forgotten)
                await self._storage.write(
                    lambda transaction, nums=forgotten: transaction.executemany(  # type: ignore[misc]
                        EMBED_LATER_AGAIN, nums
                    )
                )
            if last is None:
                break
            after = last
            await asyncio.sleep(SEARCH_PAUSE_S)
        if found:
            log.warning("Memories without a vector were found.", action="embed_late", count=found)


def _page(params: tuple[int, int], session: Session) -> tuple[list[Row], int | None]:
    [(last,)] = session.execute(PAGE_END, params)
    return session.execute(FORGOTTEN, params), last
