"""A stopped orchestrator leaves nothing at work behind it."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from recollect.config.settings import EmbeddingSettings, IndexSettings, Settings
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.postgres import copies as postgres_copies
from recollect.orchestrator.storage.sqlite import copies as sqlite_copies
from recollect.protocol.errors import RecollectError, ShuttingDown
from recollect.protocol.operations import BatchAddMemories, Reembed, Stats
from tests.harness.worlds import ANSWERED_WITHIN_S, World

WORKERS = "vector-"


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(WORKERS)}


def test_the_builders_of_a_model_on_its_way_end_with_the_orchestrator(tmp_path: Path) -> None:
    """Else they write into files that the next one works with."""
    before = workers()
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed", dimensions=64),
        index=IndexSettings(head_max=16),
    )
    world = World("sqlite", tmp_path / "data", settings)
    for start in range(0, 4_000, 200):
        contents = [f"text {number}" for number in range(start, start + 200)]
        world(BatchAddMemories([{"content": content} for content in contents]))
    world(Reembed("hashed", "hashed", 48))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while not (state := world(Stats())["embedding"]["reembedding"])["done"]:
        assert time.monotonic() < until, state
    assert state["done"] < 4_000, "the exchange was too quick for this test"
    assert workers() > before
    world.close()
    assert workers() <= before


ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"
STOPPED_WITHIN_S = 15.0


def test_a_stop_waits_neither_for_reads_without_end_nor_for_those_behind_them(
    storage_url: str, tmp_path: Path
) -> None:
    world = World(storage_url, tmp_path / "data")
    begun = threading.Semaphore(0)

    def read(session: Session) -> None:
        begun.release()
        session.execute(ENDLESS)

    async def ask_and_stop() -> list[object]:
        readers = world.settings.storage.readers
        asked: list[asyncio.Future[object]] = [
            asyncio.ensure_future(world.storage.read(read)) for _ in range(2 * readers)
        ]
        for _ in range(readers):
            await asyncio.to_thread(begun.acquire)
        began_s = time.monotonic()
        await world.orchestrator.stop()
        assert time.monotonic() - began_s < STOPPED_WITHIN_S
        return await asyncio.gather(*asked, return_exceptions=True)

    told = world.run(ask_and_stop())
    assert all(isinstance(each, RecollectError) and each.retryable for each in told), told
    assert any(isinstance(each, ShuttingDown) for each in told)
    world._runner.close()


def test_a_copy_that_is_stopped_leaves_nothing_behind(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_copies, "STEP_PAGES", 10)
    world(BatchAddMemories([{"content": f"text {n}"} for n in range(100)]))
    folder, looks = tmp_path / "backup", 0

    def stopped() -> bool:
        nonlocal looks
        looks += 1
        return looks > 2

    url = world.settings.storage.url
    with pytest.raises(ShuttingDown):
        if url == "sqlite":
            sqlite_copies.back_up(
                Path(world.settings.storage.data) / DATABASE_NAME, folder, stopped
            )
        else:
            postgres_copies.back_up(url, folder, stopped)
    assert not folder.exists()
