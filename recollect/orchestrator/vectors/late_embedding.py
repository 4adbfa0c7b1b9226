"""Memories that were stored without a vector get theirs when the embedder can make it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, PRESENT, MemoryRow
from recollect.orchestrator.storage.interface import Row, Session, Storage, WriteTransaction
from recollect.orchestrator.troubles.trouble import Trouble, unheard
from recollect.orchestrator.vectors.memory_vectors import EMBED_LATER_AGAIN
from recollect.orchestrator.vectors.refused_texts import embedded_singly
from recollect.protocol.errors import RecollectError

log = structlog.get_logger()

IDLE_S = 0.5
PAUSE_S_MIN = 0.5
PAUSE_S_MAX = 30.0
PAGE_TEXTS = 512
REFUSED_ROUNDS = 1_000
REFUSED_MAX = 10_000
SEARCH_ROWS = 20_000
SEARCH_PAUSE_S = 0.02

WAITING = f"""
SELECT {JOINED_COLUMNS} FROM unembedded u JOIN memories m ON m.num = u.num
WHERE u.num > ? AND {PRESENT} ORDER BY u.num LIMIT ?
"""
COUNT = "SELECT count(*) FROM unembedded"
# A page by its place among the numbers, so that each look costs the same.
FORGOTTEN = f"""
SELECT num FROM (
    SELECT num, deleted_us, archived_us FROM memories WHERE num > ? ORDER BY num LIMIT ?
) AS page
WHERE {PRESENT}
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
        self.searched = False
        """Whether all memories were looked through since the start."""
        self.trouble: Trouble = unheard
        # Up to here the waiting ones were tried in this round.
        self._tried_num = 0
        self._writing: asyncio.Future[None] | None = None
        # Held by whoever takes a step.
        self._stepping = asyncio.Lock()
        # How many rounds a memory is passed over, because the embedder refused it.
        self._rounds_left: dict[int, int] = {}

    async def run(self) -> None:
        """Embed what waits, whenever something does; patiently while the embedder is away."""
        pause_s = PAUSE_S_MIN
        while True:
            try:
                if not self.searched:
                    await self.find_forgotten()
                    self.searched = True
                async with self._stepping:
                    done, _ = await self._step(PAGE_TEXTS)
                pause_s, self.last_error = PAUSE_S_MIN, None
                if not done:
                    await asyncio.sleep(IDLE_S)
            except Exception as error:  # nothing may end this while memories wait
                reason = error.message if isinstance(error, RecollectError) else repr(error)
                if self.last_error is None:
                    log.warning(
                        "Memories wait for their vectors.", action="embed_late", reason=reason
                    )
                self.last_error = reason
                self.trouble("embedding_waits", reason)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def waiting(self, session: Session) -> int:
        """How many memories have no vector yet."""
        [(count,)] = session.execute(COUNT)
        return int(count)

    async def work_off(self, limit: int, until: Callable[[], bool]) -> int:
        """Embed what waits now, so many at most and until there is no more time; how many were."""
        done = 0
        async with self._stepping:
            self._tried_num = 0
            self._rounds_left.clear()
            while done < limit and not until():
                made, more = await self._step(min(PAGE_TEXTS, limit - done))
                done += made
                if not more:
                    break
            await self._written()
        return done

    async def _step(self, texts_max: int) -> tuple[int, bool]:
        """Embed some of those that wait; how many were, and whether there may be more."""
        params = (self._tried_num, texts_max)
        found = await self._storage.read(lambda session: session.execute(WAITING, params))
        rows = [MemoryRow(*row) for row in found]
        if not rows:
            # A round is over. What was refused in it is tried again in a later one.
            await self._written()
            self._tried_num = 0
            return 0, False
        meaning = self._store.meanings.current
        wanted = [row for row in rows if self._rounds_left.get(row.num, 0) <= 0]
        made = await embedded_singly(meaning.embedding, wanted)
        self._count_rounds(rows, wanted, {row.num for row, _ in made})
        if made:
            kept = [row for row, _ in made]
            embedded = Embedded.of(
                meaning, [meaning_of(row) for row in kept], [pooled for _, pooled in made]
            )
            # Written while the next ones are embedded.
            await self._written()
            self._writing = self._storage.write(partial(self._keep, kept, embedded))
        self._tried_num = rows[-1].num
        return len(made), True

    async def _written(self) -> None:
        """Wait until what was embedded before is on disk."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing

    def _count_rounds(self, rows: list[MemoryRow], wanted: list[MemoryRow], made: set[int]) -> None:
        """Pass over what was refused for some rounds, so that it is not asked for ceaselessly."""
        for row in rows:
            left = self._rounds_left.pop(row.num, 0)
            if left > 0:
                self._rounds_left[row.num] = left - 1
        for row in wanted:
            if row.num not in made and len(self._rounds_left) < REFUSED_MAX:
                self._rounds_left[row.num] = REFUSED_ROUNDS

    def _keep(
        self, rows: list[MemoryRow], embedded: Embedded, transaction: WriteTransaction
    ) -> None:
        for place, row in enumerate(rows):
            self._store.vectors.embedded_late(
                transaction, row.num, row.seq, embedded.chosen([place])
            )

    async def find_forgotten(self, *, embed: bool = True) -> int:
        """Notice memories that neither have a vector nor wait for one, and let them wait; how many
        there were. There should be none."""
        after, found = 0, 0
        while True:
            params = (after, SEARCH_ROWS)
            forgotten, last = await self._storage.read(partial(_page, params))
            if forgotten:
                found += len(forgotten)
                if embed:
                    await self._storage.write(partial(_let_wait, forgotten))
            if last is None:
                break
            after = last
            await asyncio.sleep(SEARCH_PAUSE_S)
        if found:
            log.warning("Memories without a vector were found.", action="embed_late", count=found)
        return found


def _let_wait(nums: list[Row], transaction: WriteTransaction) -> None:
    transaction.executemany(EMBED_LATER_AGAIN, nums)


def _page(params: tuple[int, int], session: Session) -> tuple[list[Row], int | None]:
    [(last,)] = session.execute(PAGE_END, params)
    return session.execute(FORGOTTEN, params), last
