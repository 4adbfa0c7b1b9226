"""Passages follow their memory through every change, and recall finds by them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.embedding.specs import hashed
from recollect.orchestrator.vectors.reembedding import Reembedding
from recollect.protocol.operations import (
    AddMemory,
    BatchAddMemories,
    DeleteMemory,
    Purge,
    Recall,
    Restore,
    UpdateMemory,
)
from tests.harness.sentences import SentenceEmbedder
from tests.harness.worlds import World

TWO = "The harbour is frozen today. Nobody has seen the lighthouse keeper."
THREE = "Bread is in the oven. The cat sleeps on the roof. It will rain before noon."
ONE = "a single remark"


@pytest.fixture
def embedder(world: World) -> SentenceEmbedder:
    embedder = SentenceEmbedder()
    before = world.orchestrator.parts.meanings.current
    world.orchestrator.parts.meanings.current = world.run(_meaning(world, embedder))
    before.embedding.close()
    before.index.close()
    return embedder


async def _meaning(world: World, embedder: SentenceEmbedder) -> Meaning:
    providers = Providers(world.settings.embedding, world.orchestrator.parts.indexes.make)
    return providers.meaning(embedder, asyncio.get_running_loop())


def add(world: World, content: str) -> str:
    memory_id: str = world(AddMemory(content))["memory_id"]
    return memory_id


def execute(world: World, sql: str) -> list[Any]:
    async def read() -> list[Any]:
        return list(await world.storage.read(lambda session: session.execute(sql)))

    return world.run(read())


def stored(world: World) -> dict[str, bytes | None]:
    """What is kept of the passages of each living memory, by its content."""
    found = execute(
        world,
        "SELECT m.content, v.passages FROM memories m JOIN vectors v ON v.num = m.num "
        "WHERE m.deleted_us IS NULL",
    )
    return {text: None if kept is None else bytes(kept) for text, kept in found}


def expected(embedder: SentenceEmbedder, *texts: str) -> dict[str, bytes | None]:
    return {text: embedder.passages(text) or None for text in texts}


def test_passages_follow_their_memory(world: World, embedder: SentenceEmbedder) -> None:
    two, one = add(world, TWO), add(world, ONE)
    world(BatchAddMemories([{"content": THREE}, {"content": "another remark"}]))
    assert stored(world) == expected(embedder, TWO, ONE, THREE, "another remark")
    world(UpdateMemory(two, {"content": "shorter now"}))
    world(UpdateMemory(one, {"content": TWO}))
    assert stored(world) == expected(embedder, "shorter now", TWO, THREE, "another remark")
    world(UpdateMemory(one, {"importance": 0.9}))
    assert stored(world)[TWO] == embedder.passages(TWO)
    world(DeleteMemory(one))
    assert stored(world) == expected(embedder, "shorter now", THREE, "another remark")
    assert execute(world, "SELECT count(*) FROM vectors") == [(3,)]
    world(Restore(one))
    world(Restore(two, version=1))
    assert execute(world, "SELECT count(*) FROM vectors WHERE passages IS NOT NULL") == [(3,)]
    assert stored(world) == expected(embedder, TWO, THREE, "another remark")
    world(DeleteMemory(one))
    world(Purge(one))
    assert execute(world, "SELECT count(*) FROM vectors") == [(3,)]


def test_what_is_embedded_late_has_passages_too(world: World, embedder: SentenceEmbedder) -> None:
    changed = add(world, THREE)
    embedder.away = True
    add(world, TWO)
    world(UpdateMemory(changed, {"content": f"{THREE} And more."}))
    assert stored(world) == {}
    embedder.away = False
    world.settle()
    assert stored(world) == expected(embedder, TWO, f"{THREE} And more.")


def test_a_move_to_another_model_brings_its_passages(
    world: World, embedder: SentenceEmbedder
) -> None:
    for text in (TWO, THREE, ONE):
        add(world, text)
    other = SentenceEmbedder("other", 32)

    async def move(target_of: SentenceEmbedder) -> None:
        reembedding = Reembedding(
            world.storage, world.orchestrator.parts.meanings, world.orchestrator.parts.indexes
        )
        reembedding.start(hashed(), partial(_meaning, world, target_of))
        while reembedding.running:
            await asyncio.sleep(0)
        assert reembedding.describe()["state"] == "done"

    world.run(move(other))
    assert stored(world) == expected(other, TWO, THREE, ONE)
    assert execute(world, "SELECT count(*) FROM shadow_vectors") == [(0,)]
    back = SentenceEmbedder()
    world.run(move(back))
    assert stored(world) == expected(back, TWO, THREE, ONE)


def test_recall_finds_the_one_sentence_of_a_text_about_many_things(
    world: World, embedder: SentenceEmbedder
) -> None:
    question = "Purple zebras juggle oranges at noon"
    long = add(
        world,
        f"Bread is in the oven since seven. {question}. My uncle repairs old bicycles in his "
        "garage. Grandmother planted forty tulips along the fence. It will rain.",
    )
    for n in range(30):
        add(world, f"Purple zebras juggle apples at dawn, remark {n}")

    def semantic() -> float:
        [found] = [
            result
            for result in world(Recall(question, k=31, explain=True))["results"]
            if result["id"] == long
        ]
        part: float = found["explanation"]["semantic"]
        return part

    assert world(Recall(question, k=1))["results"][0]["id"] == long
    assert semantic() == 1

    async def put(kept: bytes | None) -> None:
        await world.storage.write(lambda t: t.execute("UPDATE vectors SET passages = ?", (kept,)))

    for useless in (None, b"", b"123"):
        world.run(put(useless))
        assert semantic() < 0.9
