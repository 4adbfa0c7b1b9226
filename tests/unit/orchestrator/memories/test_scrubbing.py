"""Only what was scrubbed loses its mark, and nothing is touched once a store is closed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from recollect.config.settings import RedisSettings, Settings
from recollect.orchestrator.clock import SystemClock
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.meaning import Meanings
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.memories.scrubbing import Scrubbing
from recollect.orchestrator.redis.beside import RedisBeside
from recollect.orchestrator.search.lexical.fts5 import Fts5Index
from recollect.orchestrator.storage import unwiped
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.orchestrator.storage.sqlite.storage import SqliteStorage
from recollect.orchestrator.vectors.faiss_indexes import FaissIndexes


def purge(transaction: WriteTransaction) -> str:
    transaction.next_seq()
    return unwiped.mark(transaction)


def test_the_mark_of_a_purge_that_is_not_yet_noted_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        settings = Settings()
        storage = SqliteStorage(tmp_path, loop=loop)
        providers = Providers(settings.embedding, FaissIndexes(settings.index, None).make)
        meaning = providers.meaning(HashedEmbedder(), loop)
        without = RedisBeside(Settings(redis=RedisSettings("off")), time.monotonic)
        scrubbing = Scrubbing(
            storage, Fts5Index(), Meanings(meaning, 1.0), SystemClock(), without.forget_vectors
        )
        try:
            scrubbing.note([1], await storage.write(purge))
            # It is committed, but what follows a commit has not come to it yet.
            later = await storage.write(purge)
            assert await scrubbing._once()
            assert scrubbing.wiped
            assert await storage.read(unwiped.marked) == later, "a crash now would forget it"
            scrubbing.note([2], later)
            assert not scrubbing.wiped
            assert await scrubbing._once()
            assert await storage.read(unwiped.marked) is None
        finally:
            await asyncio.to_thread(storage.close)
            meaning.embedding.close()
            meaning.index.close()

    asyncio.run(scenario())


def test_a_store_that_is_closed_is_not_scrubbed(tmp_path: Path) -> None:
    async def scenario() -> None:
        storage = SqliteStorage(tmp_path, loop=asyncio.get_running_loop())
        await asyncio.to_thread(storage.close)
        for file in tmp_path.iterdir():
            file.unlink()
        assert not await storage.scrub()
        assert not list(tmp_path.iterdir()), "somebody else's folder"

    asyncio.run(scenario())
