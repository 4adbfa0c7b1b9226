"""Leases pass from holder to holder, and fence what is done under them, on every storage."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.faults.polling import wait_for
from tests.harness.worlds import World

KEYS = itertools.count()
DAY_S = 86_400
SHORT_S = 0.1


def acquire(world: World, holder: str, ttl_s: float = 60.0, name: str = "work") -> dict[str, Any]:
    answer: dict[str, Any] = world(ops.AcquireLease(name, holder, ttl_s), key=f"{next(KEYS)}")
    return answer


def count(world: World) -> int:
    total: int = world(ops.Count())["count"]
    return total


def rows(world: World, table: str) -> int:
    async def read() -> int:
        [(number,)] = await world.storage.read(lambda s: s.execute(f"SELECT count(*) FROM {table}"))
        return int(number)

    return world.run(read())


def test_one_holder_at_a_time_and_each_has_a_larger_token(world: World) -> None:
    first = acquire(world, "anna")
    assert (first["acquired"], first["holder"], first["token"]) == (True, "anna", 1)
    denied = acquire(world, "ben")
    assert (denied["acquired"], denied["holder"], denied["token"]) == (False, "anna", None)
    assert world(ops.RenewLease("work", "anna", 1))["token"] == 1
    assert world(ops.ReleaseLease("work", "anna", 1))["released"]
    second = acquire(world, "ben")
    assert second["acquired"] and second["token"] > 1
    again = acquire(world, "ben")
    assert again["acquired"] and again["token"] > second["token"]
    for stale in (ops.RenewLease("work", "anna", 1), ops.ReleaseLease("work", "anna", 1)):
        with pytest.raises(errors.LeaseLost):
            world(stale)


def test_a_lease_that_is_not_renewed_passes_on_whatever_the_wall_clock_says(world: World) -> None:
    acquire(world, "anna")
    for jump_s in (DAY_S, -2 * DAY_S):
        world.clock.advance(jump_s)
        assert not acquire(world, "ben")["acquired"]
    acquire(world, "anna", SHORT_S)
    world.clock.advance(-DAY_S)
    wait_for(lambda: acquire(world, "ben")["acquired"], within_s=10, what="ben takes over")
    # It was dead to the others; a holder that nobody has replaced may go on.
    token = acquire(world, "ben", SHORT_S)["token"]
    world.clock.advance(DAY_S)
    assert world(ops.RenewLease("work", "ben", token, SHORT_S))["token"] == token


def test_a_restart_gives_a_lease_its_whole_time_once_more(world: World) -> None:
    acquire(world, "anna")
    world.clock.advance(DAY_S)
    world.restart()
    assert not acquire(world, "ben")["acquired"]
    assert world(ops.RenewLease("work", "anna", 1))["token"] == 1


@pytest.mark.parametrize(
    "write",
    [
        ops.AddMemory("Tea"),
        ops.BatchAddMemories([{"content": "Tea"}]),
        ops.IndexDocument(text="Tea is hot.", source="tea.md"),
        ops.PushEvent("kettle", {"on": True}),
    ],
    ids=lambda write: write.spec.name,
)
def test_a_write_under_a_lease_that_passed_on_has_no_effect(
    world: World, write: ops.AddMemory
) -> None:
    token = acquire(world, "anna")["token"]
    assert world(write, key="held", fence=f"work/{token}")["status"] == "success"
    acquire(world, "anna")
    before = count(world), world(ops.RecentEvents())["count"]
    for key in ("new", "held"):
        with pytest.raises(errors.LeaseLost):
            world(write, key=key, fence=f"work/{token}")
    assert (count(world), world(ops.RecentEvents())["count"]) == before
    # Who only reads is told, and who writes under no lease is not hindered.
    assert world(ops.Count(), fence=f"work/{token}")["count"] == before[0]
    assert world(write, key="free")["status"] == "success"


def test_a_lease_that_was_given_back_fences_what_was_done_under_it(world: World) -> None:
    token = acquire(world, "anna")["token"]
    world(ops.ReleaseLease("work", "anna", token))
    with pytest.raises(errors.LeaseLost):
        world(ops.AddMemory("Late"), fence=f"work/{token}")
    with pytest.raises(errors.LeaseLost):
        world(ops.AddMemory("Never held"), fence="elsewhere/1")
    assert count(world) == 0


@pytest.mark.parametrize(
    "fence", ["", "work", "work/", "work/x", "work/-1", "Work/1", "/1", "a/1\n"]
)
def test_a_fence_that_is_none_is_refused(world: World, fence: str) -> None:
    with pytest.raises(errors.InvalidArgument):
        world(ops.AddMemory("x"), fence=fence)


def test_a_run_of_many_writes_is_refused_from_the_write_at_which_the_lease_was_lost(
    world: World,
) -> None:
    """A run looks at its lease in every transaction: begun in time is not enough."""
    token = acquire(world, "anna")["token"]
    for _ in range(2):
        world(ops.AddMemory("The deploy runs every Friday at noon", namespace="app:site"))
    writes = world.orchestrator.parts.running._writes
    real = writes.write

    def lose_first(call: Any, function: Any) -> Any:
        writes.write = real  # type: ignore[method-assign]
        begun = real(call, function)
        world.orchestrator.parts.storage.write(
            lambda t: t.execute("UPDATE leases SET token = token + 1 WHERE name = 'work'")
        )
        return begun

    writes.write = lose_first  # type: ignore[method-assign]
    with pytest.raises(errors.LeaseLost):
        world(ops.Consolidate("app:site", "keep_latest"), fence=f"work/{token}")
    [run] = world(ops.ListRuns())["runs"]
    assert run["run_status"] == "failed"
    assert world(ops.ListMemories(namespace="app:site"))["count"] == 2


def test_renewing_leaves_nothing_behind(world: World) -> None:
    token = acquire(world, "anna")["token"]
    before = rows(world, "journal"), rows(world, "idempotency")
    for number in range(20):
        world(ops.RenewLease("work", "anna", token), key=f"renewal {number}")
        assert not acquire(world, "ben")["acquired"]
    assert (rows(world, "journal"), rows(world, "idempotency")) == before


def test_the_answer_to_an_acquisition_can_be_had_again(world: World) -> None:
    first = world(ops.AcquireLease("work", "anna"), key="a")
    assert world(ops.AcquireLease("work", "anna"), key="a") == first
