"""What comes in between a migration and what it is about, before or after it, on every storage."""

from __future__ import annotations

import asyncio
from typing import Any

from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation
from tests.contract.test_tiers import DAY_S, HOME, TRIP, add, memory, state, trip
from tests.harness.worlds import World


def with_in_between(
    world: World, *meanwhile: Operation[Any], asked: Operation[Any] | None = None
) -> Any:
    """The answer to a migration, or to what else is asked for, where something is done when it has
    looked and not yet written."""
    lock = world.orchestrator.parts.running.lock

    async def queued() -> None:
        while "waiters" not in repr(lock):
            await asyncio.sleep(0.001)

    async def work() -> Any:
        async with lock:
            migrating = asyncio.ensure_future(world.ask(asked or ops.Migrate()))
            await queued()
            turn = asyncio.ensure_future(lock.acquire())
            await asyncio.sleep(0)
        # It sees to what was broken off, then it looks, and waits for its turn to write.
        await turn
        await queued()
        for operation in meanwhile:
            assert (await world.ask(operation))["status"] == "success"
        lock.release()
        return await migrating

    return world.run(work())


def test_what_is_reinforced_meanwhile_stays_so(world: World) -> None:
    moved, *summed_up = add(world, "The lamp is on"), *trip(world)
    world.clock.advance(31 * DAY_S)
    reinforced = [ops.ReinforceMemory(memory_id) for memory_id in (moved, summed_up[0])]
    done = with_in_between(world, *reinforced)
    assert (done["to_working"], done["summarised"]) == (1, 5)
    for memory_id in (moved, summed_up[0]):
        assert memory(world, memory_id)["access_count"] == 1
    assert memory(world, summed_up[1])["access_count"] == 0


def test_a_group_of_which_one_is_changed_meanwhile_is_left_and_said_to_be(world: World) -> None:
    ids = trip(world)
    world.clock.advance(31 * DAY_S)
    done = with_in_between(world, ops.UpdateMemory(ids[0], {"tags": ["mine"]}))
    assert (done["summarised"], done["complete"], done["summaries"]) == (0, False, [])
    again = world(ops.Migrate())
    assert (again["summarised"], again["complete"]) == (4, True)
    assert ids[0] not in again["summaries"][0]["source_ids"]


def test_a_group_of_which_one_is_used_meanwhile_has_not_faded(world: World) -> None:
    ids = trip(world)
    world.clock.advance(12 * 365 * DAY_S)
    used = ops.ReinforceMemory(ids[0])
    done = with_in_between(world, used, asked=ops.FadeMemories())
    assert (done["summarised"], done["complete"]) == (0, False)
    assert memory(world, ids[0])["archived_at"] is None
    # The others have faded, and the one that is used is not among them.
    assert world(ops.FadeMemories())["complete"] is True
    assert [memory(world, one)["memory_tier"] for one in ids[:2]] == ["medium", "long"]


def test_what_a_source_changed_is_taken_back_though_it_moved_on_since(world: World) -> None:
    changed = add(world, "The lamp is on", memory_tier="medium", trust=0.5)
    world(ops.UpdateMemory(changed, {"trust": 1.0, "importance": 0.7}), agent="rogue")
    world.clock.advance(31 * DAY_S)
    run = world(ops.Migrate(), agent="keeper")
    assert world(ops.ForgetSource("rogue", dry_run=True))["reverted"] == 1
    world(ops.Undo(run["run_id"]), agent="keeper")
    assert world(ops.ForgetSource("rogue"))["reverted"] == 1
    back = memory(world, changed)
    assert (back["trust"], back["importance"], back["memory_tier"]) == (0.5, 0.5, "medium")
    assert world(ops.ForgetSource("rogue"))["reverted"] == 0


def test_what_comes_back_with_a_source_is_all_as_before(world: World) -> None:
    session = world(ops.CreateSession("alice"))["session_id"]
    for text in TRIP:
        add(world, text, session=session, memory_tier="medium")
    before = state(world)
    add(world, "It flies to Vienna", session=session, memory_tier="medium", source="rumour")
    world.clock.advance(31 * DAY_S)
    assert world(ops.Migrate())["summarised"] == 6
    summed_up = state(world)
    run = world(ops.ForgetSource("rumour"))
    assert state(world) == before
    world(ops.Undo(run["run_id"]))
    assert state(world) == summed_up


def test_the_purge_of_what_was_summed_up_names_the_summary(world: World) -> None:
    ids = trip(world)
    world.clock.advance(31 * DAY_S)
    run = world(ops.Migrate(), key="once")
    [made] = run["summaries"]
    said = next(i for i, text in zip(ids, TRIP, strict=True) if text in made["text"])
    assert world(ops.Purge(said))["derived_ids"] == [made["summary_id"]]
    assert world(ops.Purge(made["summary_id"]))["derived_ids"] == []
    # The rest is there, and the same request again repeats nothing of what is gone.
    assert world(ops.Migrate(), key="once")["summaries"][0]["text"] == ""
    undone = world(ops.Undo(run["run_id"]))
    assert (undone["restored"], undone["removed"]) == (4, 0)
    assert world(ops.Count(namespace=HOME))["count"] == 4
