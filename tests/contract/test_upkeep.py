"""What is derived is kept in order and made to agree; what is damaged is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.config.settings import EmbeddingSettings, IndexSettings, Settings
from recollect.orchestrator.search.vectors import FaissIndex
from recollect.orchestrator.vectors import pgvector_indexes
from recollect.protocol import operations as ops
from tests.contract.test_tiers import HOME, add
from tests.faults.polling import wait_for
from tests.harness.postgres import new_database
from tests.harness.worlds import World


def filled(world: World, count: int = 8) -> list[str]:
    ids = [add(world, f"Memory number {n}") for n in range(count)]
    world.settle()
    return ids


def behind_its_back(world: World, *statements: str) -> None:
    """Change rows as no operation does."""

    def write(transaction: Any) -> None:
        for statement in statements:
            transaction.execute(statement)

    async def change() -> None:
        await world.storage.write(write)

    world.run(change())


def searched(world: World) -> bool:
    """Whether the look through all memories that a start begins with is over."""
    world(ops.Ping())
    return world.orchestrator.parts.late.searched


def nearest(world: World, text: str) -> str:
    found: str = world(ops.SemanticSearch(text, 1))["results"][0]["content"]
    return found


def lose_and_gain(world: World, nums: list[int]) -> None:
    """Have the index without some memories, and with one that is none."""
    index = world.orchestrator.parts.meanings.current.index
    if isinstance(index, FaissIndex):
        for num in nums:
            index.remove(num)
        index.put(999_999, np.ones(256, dtype=np.float32), 999_999)
        return
    # An index of the database holds what is stored of its model.
    behind_its_back(
        world,
        "INSERT INTO vectors (num, model, vector, seq) "
        f"SELECT 999999, model, vector, seq FROM vectors WHERE num = {nums[0]}",
    )
    listed = ", ".join(map(str, nums))
    behind_its_back(world, f"UPDATE vectors SET model = 'another' WHERE num IN ({listed})")


def test_an_index_that_lost_and_gained_vectors_is_made_to_agree(world: World) -> None:
    ids = filled(world)
    num = {memory_id: world(ops.GetMemory(memory_id))["memory"]["seq"] for memory_id in ids}
    before = world(ops.CheckIndex())
    assert (before["memories"], before["vectors"], before["agrees"]) == (8, 8, True)
    lose_and_gain(world, [num[ids[2]], num[ids[5]]])
    assert nearest(world, "Memory number 5") != "Memory number 5"
    looked = world(ops.CheckIndex(repair=False))
    assert (looked["missing"], looked["surplus"], looked["agrees"]) == (2, 1, False)
    integrity = world(ops.CheckIntegrity())
    assert "index" in [problem["part"] for problem in integrity["problems"]]
    assert not integrity["sound"]
    done = world(ops.CheckIndex())
    assert (done["missing"], done["surplus"], done["repaired"]) == (2, 1, 3)
    world.settle()
    assert done["agrees"] and nearest(world, "Memory number 5") == "Memory number 5"
    assert world(ops.CheckIntegrity())["sound"]


def test_a_memory_that_lost_its_stored_vector_gets_one(world: World) -> None:
    ids = filled(world)
    num = world(ops.GetMemory(ids[3]))["memory"]["seq"]
    wait_for(lambda: searched(world), within_s=20, what="the search at the start to end")
    behind_its_back(world, f"DELETE FROM vectors WHERE num = {num}")
    integrity = world(ops.CheckIntegrity(quick=False))
    assert {problem["part"] for problem in integrity["problems"]} == {"vectors", "index"}
    done = world(ops.BackfillEmbeddings())
    assert (done["waiting"], done["reason"]) == (0, None)
    assert done["embedded"] == 1
    assert world(ops.CheckIndex())["agrees"]
    assert nearest(world, "Memory number 3") == "Memory number 3"


def test_an_index_of_the_process_is_sealed_merged_and_rid_of_what_is_gone(tmp_path: Path) -> None:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed", dimensions=32), index=IndexSettings()
    )
    world = World("sqlite", tmp_path, settings)
    try:
        for _ in range(2):
            filled(world, 20)
            shown = world(ops.MaintainIndex(dry_run=True))
            assert (shown["sealed"], shown["dry_run"]) == (20, True)
            assert world(ops.MaintainIndex())["sealed"] == 20
        done = world(ops.MaintainIndex())
        assert (done["segments"], done["vectors"], done["complete"]) == (1, 40, True)
        ids = [m["id"] for m in world(ops.ListMemories(limit=50))["memories"]]
        for memory_id in ids[:10]:
            world(ops.DeleteMemory(memory_id))
        done = world(ops.MaintainIndex())
        assert (done["compacted"], done["segments"], done["vectors"]) == (1, 1, 30)
        [segment] = world(ops.Stats())["index"]["segments"]
        assert segment["tombstones"] == 0
        assert world(ops.SemanticSearch("Memory number 7", 5))["count"] == 5
    finally:
        world.close()


def test_an_index_of_the_database_has_nothing_to_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector_indexes, "INDEXED_MIN", 0)
    world = World(new_database(), tmp_path)
    try:
        ids = filled(world, 20)
        for memory_id in ids[:10]:
            world(ops.DeleteMemory(memory_id))
        done = world(ops.MaintainIndex())
        assert (done["sealed"], done["segments"], done["vectors"]) == (0, 1, 10)
        assert done["complete"]
        [segment] = world(ops.Stats())["index"]["segments"]
        assert (segment["kind"], segment["vectors"]) == ("hnsw", 10) and segment["bytes"] > 0
    finally:
        world.close()


def test_a_storage_is_optimised_while_it_is_used(world: World) -> None:
    ids = filled(world, 50)
    for memory_id in ids[:25]:
        world(ops.DeleteMemory(memory_id))
    done = world(ops.OptimiseStorage())
    assert done["complete"] and done["after_bytes"] > 0
    if world.settings.storage.url == "sqlite":
        assert done["log_bytes"] == 0
    assert world(ops.GetMemory(ids[30]))["memory"]["namespace"] == HOME
    assert world(ops.CheckIntegrity(quick=False))["sound"]


DAMAGES: dict[str, Callable[[int], str]] = {
    "links": lambda num: f"DELETE FROM decisions WHERE num = {num}",
    "audit": lambda num: f"UPDATE journal SET operation = 'nothing' WHERE seq = {num}",
    "words": lambda num: f"DELETE FROM {{words}} = {num}",
}


@pytest.mark.parametrize("part", DAMAGES)
def test_damage_is_named_with_what_to_do(world: World, part: str) -> None:
    world(ops.LogDecision("Where to sleep", ["Tent", "Inn"], "Tent", namespace=HOME))
    world.settle()
    sound = world(ops.CheckIntegrity())
    assert sound["sound"] and sound["problems"] == []
    assert {"database", "audit", "vectors", "links", "index", "words"} == set(sound["checked"])
    [decision] = world(ops.ListMemories())["memories"]
    sqlite = world.settings.storage.url == "sqlite"
    words = "memories_fts WHERE rowid" if sqlite else "memory_words WHERE num"
    behind_its_back(world, DAMAGES[part](decision["seq"]).format(words=words))
    found = world(ops.CheckIntegrity())
    assert not found["sound"]
    [problem] = found["problems"]
    assert problem["part"] == part and problem["text"] and problem["advice"]


def test_a_store_that_is_searched_while_it_grows_is_found_sound(world: World) -> None:
    # Full text is laid out anew as it grows; who has searched it before must not miss that.
    for turn in range(12):
        for _ in range(6):
            world(ops.SearchMemory(f"number {turn}"))
        for number in range(12):
            world(ops.AddMemory(f"Memory {turn} of number {number} grows"))
        integrity = world(ops.CheckIntegrity())
        assert integrity["problems"] == []
