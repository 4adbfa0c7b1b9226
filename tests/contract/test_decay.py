"""What has faded goes to a colder tier, and from the last one into the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.config.settings import DecaySettings, EmbeddingSettings, Settings
from recollect.protocol import operations as ops
from recollect.protocol.errors import Forbidden
from tests.contract.test_tiers import HOME, add, identity, memory, state, tiers, trip
from tests.harness.worlds import World

DAY_S = 86_400
YEAR_S = 365 * DAY_S
LONG_S = 12 * YEAR_S
"""By then a memory of any tier has faded."""


def fading(url: str, folder: Path, **given: Any) -> World:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"), decay=DecaySettings(**given)
    )
    return World(url, folder, settings)


def moved(answer: dict[str, Any]) -> tuple[int, ...]:
    names = ("to_medium", "to_long", "summarised", "archived", "kept")
    return tuple(answer[name] for name in names)


def test_what_has_faded_moves_by_one_tier_and_has_time_there(world: World) -> None:
    lamp = add(world, "The lamp is on", memory_tier="short")
    door = add(world, "The door is open", memory_tier="medium")
    roof = add(world, "The roof is new", memory_tier="long")
    world.clock.advance(30 * DAY_S)
    read = add(world, "The cellar is dry", memory_tier="short")
    assert moved(world(ops.FadeMemories())) == (0, 0, 0, 0, 0)

    world.clock.advance(LONG_S)
    world(ops.ReinforceMemory(read))
    shown = world(ops.FadeMemories(dry_run=True))
    assert (shown["run_id"], moved(shown)) == (None, (1, 1, 0, 1, 0))
    done = world(ops.FadeMemories(), agent="keeper")
    assert (moved(done), done["examined"], done["complete"]) == ((1, 1, 0, 1, 0), 3, True)
    assert tiers(world, [lamp, door, roof, read]) == ["medium", "long", "long", "short"]
    assert memory(world, roof)["archived_at"] and not memory(world, door)["archived_at"]
    assert memory(world, lamp)["updated_by"] == "keeper"
    # What was moved has time in its new tier: the next run does not even look at it.
    assert world(ops.FadeMemories())["examined"] == 0

    undone = world(ops.Undo(done["run_id"]))
    assert (undone["restored"], undone["skipped"]) == (3, [])
    assert tiers(world, [lamp, door, roof]) == ["short", "medium", "long"]
    assert not memory(world, roof)["archived_at"]
    assert world(ops.SemanticSearch("The roof is new"))["results"][0]["id"] == roof
    assert world(ops.FadeMemories())["examined"] == 0


def test_old_things_are_summed_up_on_their_way(world: World) -> None:
    sources = trip(world)
    before = state(world)
    world.clock.advance(LONG_S)
    done = world(ops.FadeMemories(HOME))
    assert moved(done) == (0, 0, len(sources), 0, 0)
    assert all(memory(world, source)["archived_at"] for source in sources)
    [summary] = world(ops.ListMemories(namespace=HOME))["memories"]
    assert (summary["collection"], summary["memory_tier"]) == ("summaries", "long")
    world(ops.Undo(done["run_id"]))
    after = state(world)
    without = ("stability_s", "fades_at", "last_accessed_at")
    assert [[f for f in one if f[0] not in without] for one in after] == [
        [f for f in one if f[0] not in without] for one in before
    ]


def test_what_is_written_anew_has_time_again(world: World) -> None:
    def put() -> str:
        memory_id: str = world(ops.Put(HOME, "door", "open", memory_tier="long"))["memory_id"]
        return memory_id

    def procedure() -> str:
        stored = ops.StoreProcedure("lock up", ["Turn the key."], namespace=HOME)
        memory_id: str = world(stored)["memory_id"]
        return memory_id

    put(), procedure()
    world.clock.advance(LONG_S)
    ids = [put(), procedure()]
    # What was written this moment is not moved, nor even looked at.
    assert world(ops.FadeMemories())["examined"] == 0
    assert [memory(world, one)["archived_at"] for one in ids] == [None, None]
    world.clock.advance(LONG_S)
    world(ops.FadeMemories())
    assert memory(world, ids[0])["archived_at"] is not None
    assert put() == ids[0]
    assert world(ops.FadeMemories())["examined"] == 0
    assert memory(world, ids[0])["archived_at"] is None


def test_what_is_important_or_holds_until_it_is_changed_is_kept(world: World) -> None:
    vital = add(world, "The safe's place", memory_tier="long", importance=0.95)
    world(ops.SavePreference("theme", "dark", namespace="user:anna"))
    task = world(ops.SaveTask("Paint the fence", "fence", namespace=HOME))["task_id"]
    world.clock.advance(LONG_S)
    done = world(ops.FadeMemories())
    assert (moved(done), done["run_id"], done["complete"]) == ((0, 0, 0, 0, 3), None, True)
    # Neither is it read again by every run.
    assert world(ops.FadeMemories())["examined"] == 0
    [listed] = world(ops.ListMemories(filters={"id": vital}))["memories"]
    assert listed["archived_at"] is None and listed["strength"] < 0.05
    assert world(ops.GetTask(task, namespace=HOME))["task"]["memory_id"]


def test_a_namespace_gets_no_fewer_than_it_may_within_a_day(
    storage_url: str, tmp_path: Path
) -> None:
    world = fading(storage_url, tmp_path, shrink_max=0.25)
    try:
        ids = [add(world, f"Number {n}", memory_tier="long") for n in range(8)]
        alone = add(world, "The only one", "user:ben", memory_tier="long")
        world.clock.advance(LONG_S)
        first = world(ops.FadeMemories())
        assert (first["archived"], first["complete"]) == (3, False)
        assert "decay.shrink_max" in first["reason"]
        assert memory(world, alone)["archived_at"]
        # However often it is asked for: the rest waits until tomorrow.
        assert world(ops.FadeMemories())["examined"] == 0
        world.clock.advance(1.1 * DAY_S)
        assert world(ops.FadeMemories())["archived"] == 1
        days = 0
        while sum(memory(world, one)["archived_at"] is None for one in ids):
            world.clock.advance(1.1 * DAY_S)
            assert world(ops.FadeMemories())["archived"] == 1
            days += 1
        assert days == 5
    finally:
        world.close()


def test_a_run_is_bounded_and_the_same_again_goes_on(world: World) -> None:
    for n in range(5):
        add(world, f"Note {n}", memory_tier="short")
    add(world, "Elsewhere", "user:ben", memory_tier="short")
    world.clock.advance(LONG_S)
    first = world(ops.FadeMemories(HOME, limit=3))
    assert (first["to_medium"], first["complete"]) == (3, False)
    second = world(ops.FadeMemories(HOME, limit=3))
    assert (second["to_medium"], second["complete"]) == (2, True)
    assert world(ops.FadeMemories())["to_medium"] == 1
    # The same request has its effect once.
    add(world, "Another", memory_tier="short")
    world.clock.advance(LONG_S)
    once = world(ops.FadeMemories(), key="once")
    assert world(ops.FadeMemories(), key="once") == once
    with pytest.raises(Forbidden):
        world(ops.FadeMemories(HOME), identity("anna", (HOME, "admin")))


def test_a_memory_that_is_read_over_and_over_keeps_being_counted(
    storage_url: str, tmp_path: Path
) -> None:
    world = fading(storage_url, tmp_path / "data", access_gain=10.0, stability_days_max=365.0)
    try:
        read = add(world, "The tide table")
        for _ in range(400):
            world(ops.GetMemory(read))
        assert world.run(world.orchestrator.parts.accesses.flush()) == 1
        after = world(ops.GetMemory(read))["memory"]
        assert after["access_count"] >= 400
        assert after["stability_s"] == 365.0 * DAY_S
    finally:
        world.close()
