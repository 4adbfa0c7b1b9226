"""What is in a scope is remembered from search to search, and never out of date."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from recollect.orchestrator.search.scopes import (
    ESTIMATES_BYTES_MAX,
    NUM_BYTES,
    NUMS_KEPT_MAX,
    Scopes,
)
from recollect.orchestrator.storage.interface import Session
from recollect.protocol import operations as ops
from tests.harness.worlds import World

DAY_S = 86_400
RARE = {"metadata.kind": "rare"}
ASKED = 12
"""Often enough for any scope to be listed."""


@pytest.fixture
def filled(world: World) -> World:
    """Many memories, of which few fit."""
    items = [{"content": f"Common fact {n}", "metadata": {"kind": "common"}} for n in range(60)]
    world(ops.BatchAddMemories(items, namespace="user:many"))
    rare = [{"content": f"Rare fact {n}", "metadata": {"kind": "rare"}} for n in range(3)]
    world(ops.BatchAddMemories(rare, namespace="user:few"))
    return world


def found(world: World, filters: dict[str, Any] | None = None, **scope: Any) -> set[str]:
    answer = world(ops.SemanticSearch("fact", 50, filters, **scope))
    return {result["content"] for result in answer["results"]}


@pytest.mark.parametrize("scope", [{"filters": RARE}, {"namespace": "user:few"}])
def test_a_scope_that_is_asked_again_follows_every_change(
    filled: World, scope: dict[str, Any]
) -> None:
    world = filled
    expected = {"Rare fact 0", "Rare fact 1", "Rare fact 2"}
    for _ in range(ASKED):
        assert found(world, **scope) == expected
    added = world(ops.AddMemory("Rare fact 3", metadata={"kind": "rare"}, namespace="user:few"))
    assert found(world, **scope) == expected | {"Rare fact 3"}
    memory_id = added["memory_id"]
    world(ops.UpdateMemory(memory_id, {"content": "Rare fact three"}))
    assert found(world, **scope) == expected | {"Rare fact three"}
    world(ops.DeleteMemory(memory_id))
    assert found(world, **scope) == expected
    world(ops.Restore(memory_id))
    assert found(world, **scope) == expected | {"Rare fact three"}
    world(ops.Purge(memory_id))
    assert found(world, **scope) == expected
    more = [{"content": f"Rare note {n}", "metadata": {"kind": "rare"}} for n in range(30)]
    world(ops.BatchAddMemories(more, namespace="user:few"))
    assert found(world, **scope) == expected | {f"Rare note {n}" for n in range(30)}


def test_what_comes_to_fit_and_what_ceases_to(filled: World) -> None:
    world = filled
    assert len(found(world, RARE)) == 3
    changed = world(ops.ListMemories(namespace="user:many", limit=2))["memories"]
    for memory in changed:
        world(ops.UpdateMemory(memory["id"], {"metadata": {"kind": "rare"}}))
    assert len(found(world, RARE)) == 5
    world(ops.UpdateMemory(changed[0]["id"], {"metadata": {"kind": "common"}}))
    for _ in range(ASKED):
        assert len(found(world, RARE)) == 4


def test_memories_that_lose_their_session_are_found_as_such(filled: World) -> None:
    world = filled
    session = world(ops.CreateSession("anna"))["session_id"]
    world(ops.AddMemory("Said in a session", namespace="user:few"), session=session)
    without = {"NOT": {"session_id": session}}
    for _ in range(ASKED):
        assert "Said in a session" in found(world, {"session_id": session})
        assert "Said in a session" not in found(world, without, namespace="user:few")
    world(ops.DeleteSession(session))
    assert found(world, {"session_id": session}) == set()
    assert "Said in a session" in found(world, without, namespace="user:few")


def test_a_trimmed_journal_hides_no_change(filled: World) -> None:
    world = filled
    assert len(found(world, RARE)) == 3
    world(ops.AddMemory("Rare fact 3", metadata={"kind": "rare"}))
    world.clock.advance(30 * DAY_S)
    world(ops.AddMemory("Common fact", metadata={"kind": "common"}))
    assert world(ops.TrimJournal(7.0))["complete"]
    assert len(found(world, RARE)) == 4


def test_words_are_found_in_a_scope_that_leaves_few_after_every_change(filled: World) -> None:
    world = filled

    def by_words(query: str) -> set[str]:
        results = world(ops.Recall(query, 50, RARE, explain=True))["results"]
        return {r["content"] for r in results if r["explanation"].get("lexical", 0) > 0}

    assert "Rare fact 1" in by_words("rare fact 1")
    [moved] = world(ops.ListMemories(namespace="user:many", limit=1))["memories"]
    assert moved["content"] not in by_words(moved["content"])
    world(ops.UpdateMemory(moved["id"], {"metadata": {"kind": "rare"}}))
    assert moved["content"] in by_words(moved["content"])
    world(ops.UpdateMemory(moved["id"], {"metadata": {"kind": "common"}}))
    assert moved["content"] not in by_words(moved["content"])


def test_filters_with_long_lists_are_kept_within_a_bound(world: World) -> None:
    scopes = Scopes(random.Random(1))

    def look(session: Session) -> None:
        for n in range(800):
            ids = [f"memory-{n:08}-{at:08}-of-a-long-list" for at in range(500)]
            condition = f"id IN ({', '.join('?' * len(ids))})", ids
            scopes.estimate(session, condition)
            scopes.listed(session, condition)

    async def looked() -> None:
        await world.storage.read(look)

    tracemalloc.start()
    world.run(looked())
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < ESTIMATES_BYTES_MAX + NUMS_KEPT_MAX * NUM_BYTES
