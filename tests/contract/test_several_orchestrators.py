"""Several orchestrators on one database: what one writes, all find at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.protocol import operations as ops
from tests.harness.postgres import new_database
from tests.harness.worlds import ANSWERED_WITHIN_S, World

WAYS = (ops.SearchMemory, ops.SemanticSearch, ops.Recall)

NEW_MODEL = "hashed-ngrams-v1/64"

Pair = tuple[World, World]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    url = new_database()
    worlds = World(url, tmp_path / "one"), World(url, tmp_path / "other")
    yield worlds
    for world in worlds:
        world.close()


def found(world: World, way: Any, query: str, **given: Any) -> list[str]:
    return [result["id"] for result in world(way(query, **given))["results"]]


def test_what_one_writes_the_other_finds_at_once(pair: Pair) -> None:
    for writer, reader in (pair, pair[::-1]):
        # Whatever is kept of a scope or a word is of before.
        for way in WAYS:
            found(reader, way, "harbour winter", namespace="user:alice")
        added = writer(ops.AddMemory("The harbour froze this winter", namespace="user:alice"))
        memory_id = added["memory_id"]
        for way in WAYS:
            for scope in ({}, {"namespace": "user:alice"}, {"filters": {"trust": {"gt": 0}}}):
                assert memory_id in found(reader, way, "harbour winter", **scope), way
        writer(ops.UpdateMemory(memory_id, {"content": "A violin in its case"}))
        for way in WAYS:
            assert found(reader, way, "violin case")[0] == memory_id
        assert memory_id not in found(reader, ops.SearchMemory, "harbour")
        writer(ops.DeleteMemory(memory_id))
        for way in WAYS:
            assert memory_id not in found(reader, way, "violin case")
        reader(ops.Restore(memory_id))
        for way in WAYS:
            assert memory_id in found(writer, way, "violin case")
        reader(ops.Purge(memory_id))
        for way in WAYS:
            assert memory_id not in found(writer, way, "violin case")


def test_both_write_at_once_and_both_have_all_of_it(pair: Pair) -> None:
    one, other = pair
    for n in range(6):
        for name, world in (("one", one), ("other", other)):
            items = [{"content": f"{name} lantern {n} {m}"} for m in range(5)]
            world(ops.BatchAddMemories(items))
    for world in pair:
        for way in WAYS:
            size = {"limit": 100} if way is ops.SearchMemory else {"k": 100}
            assert len(found(world, way, "lantern", **size)) == 60
        assert world(ops.CheckIndex(repair=False))["agrees"]
        assert world(ops.CheckIntegrity())["sound"]


def test_a_new_model_comes_into_use_with_all_of_them(pair: Pair) -> None:
    one, other = pair
    ids = one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(30)]))
    one(ops.Reembed("hashed", "hashed", 64))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while time.monotonic() < until:
        other(ops.AddMemory("a lamp that is written meanwhile"))
        models = {world(ops.Stats())["index"]["model"] for world in pair}
        if models == {NEW_MODEL}:
            break
    assert models == {NEW_MODEL}, models
    for world in pair:
        world.settle()
        assert ids["memory_ids"][7] in found(world, ops.SemanticSearch, "lantern number 7")
    later = other(ops.AddMemory("a heron on the roof"))["memory_id"]
    assert found(one, ops.SemanticSearch, "heron roof")[0] == later


def test_who_still_has_the_old_model_leaves_the_vectors_of_the_new_one(pair: Pair) -> None:
    one, other = pair
    old = other.orchestrator.meanings.current
    one(ops.BatchAddMemories([{"content": f"lantern number {n}"} for n in range(20)]))
    one(ops.Reembed("hashed", "hashed", 64))
    until = time.monotonic() + ANSWERED_WITHIN_S
    while one(ops.Stats())["index"]["model"] != NEW_MODEL:
        assert time.monotonic() < until
    other.run(other.orchestrator._indexes.load(other.storage, old))
    stats = one(ops.Stats())
    assert (stats["index"]["vectors"], stats["embedding"]["waiting"]) == (20, 0)
