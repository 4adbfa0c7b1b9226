"""What becomes of a model that another one replaced, while the store is worked with."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.specs import hashed
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.storage.interface import Storage
from recollect.orchestrator.troubles.trouble import Trouble
from recollect.orchestrator.vectors.indexes import VectorIndexes
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.protocol.errors import StorageFailed
from recollect.protocol.operations import AddMemory, Purge, ReadChanges, SemanticSearch
from tests.harness.worlds import World


class Failing:
    """Indexes of which the first cannot be removed at once."""

    def __init__(self, indexes: VectorIndexes) -> None:
        self._indexes = indexes
        self.failures = 0

    def make(self, embedder: Embedder, trouble: Trouble) -> VectorIndex:
        return self._indexes.make(embedder, trouble)

    async def load(self, storage: Storage, meaning: Meaning, table: str = "vectors") -> int:
        return await self._indexes.load(storage, meaning, table)

    async def keep_up(self, storage: Storage, meaning: Meaning) -> None:
        await self._indexes.keep_up(storage, meaning)

    async def discard(self, storage: Storage, meaning: Meaning) -> None:
        if not self.failures:
            self.failures += 1
            raise StorageFailed("The connection was lost.")
        await self._indexes.discard(storage, meaning)

    def forget_others(self, model: str) -> None:
        self._indexes.forget_others(model)


def test_a_purge_is_finished_though_the_old_index_could_not_be_removed_at_once(
    world: World,
) -> None:
    world(AddMemory("The harbour is closed."))
    purged = world(AddMemory("The lighthouse is white."))["memory_id"]
    parts = world.orchestrator.parts
    failing = Failing(parts.indexes)

    async def move() -> None:
        async def make() -> Meaning:
            return parts.providers.meaning(HashedEmbedder(64), asyncio.get_running_loop())

        reembedding = Reembedding(world.storage, parts.meanings, failing)
        reembedding.start(hashed(64), make)
        while reembedding.running:
            await asyncio.sleep(0)
        assert reembedding.describe()["state"] == "done"

    world.run(move())
    assert failing.failures == 1
    assert world(Purge(purged))["wiped"]


def test_the_old_index_is_there_until_those_who_began_with_it_are_answered(tmp_path: Path) -> None:
    world = World("sqlite", tmp_path / "data")
    memory_id = world(AddMemory("The harbour is closed."))["memory_id"]
    parts = world.orchestrator.parts
    old = parts.meanings.current
    found: list[int] = []

    async def move() -> None:
        async def make() -> Meaning:
            return parts.providers.meaning(HashedEmbedder(64), asyncio.get_running_loop())

        async def somebody_searches(within_s: float) -> None:
            assert within_s > 0
            vector = old.embedding.embed_now(["The harbour"], "query")[0]
            found.append(
                await world.storage.read(
                    lambda session: len(old.index.seen_by(session).search(vector, 5))
                )
            )

        reembedding = Reembedding(world.storage, parts.meanings, parts.indexes)
        reembedding.under_way = somebody_searches
        reembedding.start(hashed(64), make)
        while reembedding.running:
            await asyncio.sleep(0)

    world.run(move())
    assert found == [1]
    assert world(SemanticSearch("the harbour"))["results"][0]["id"] == memory_id
    world.close()


def test_what_is_under_way_is_waited_for_and_what_comes_later_is_not(world: World) -> None:
    async def scenario() -> None:
        reading = asyncio.ensure_future(world.ask(ReadChanges(namespace="user:a", wait_s=15.0)))
        await asyncio.sleep(0)
        waited = asyncio.ensure_future(world.orchestrator.parts.reembedding.under_way(15.0))
        await world.ask(AddMemory("In another place.", namespace="user:b"))
        assert not waited.done()
        later = asyncio.ensure_future(world.ask(ReadChanges(namespace="user:c", wait_s=15.0)))
        await world.ask(AddMemory("Here.", namespace="user:a"))
        assert len((await reading)["changes"]) == 1
        await waited
        assert not later.done()
        await world.ask(AddMemory("There.", namespace="user:c"))
        await later

    world.run(scenario())
