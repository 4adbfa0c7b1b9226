"""The change feed: in order, complete, filtered, only what one may read; and how it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.config.settings import EmbeddingSettings, NetworkSettings, Settings
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.feed import pages
from recollect.protocol import errors
from recollect.protocol import operations as ops
from tests.faults.walls import identity
from tests.harness.worlds import World

ALICE = identity("alice", ("user:alice", "admin"))
NOBODY = identity("nobody")
WAIT_S = 15.0
"""Longer than any test takes: who waits so long was woken."""


def read(world: World, after: int | None = 0, who: Identity = LOCAL, **options: Any) -> Any:
    return world(ops.ReadChanges(after, **options), who)


def seqs(page: Any) -> list[int]:
    return [change["seq"] for change in page["changes"]]


def add(world: World, text: str, namespace: str = "user:alice", **envelope: Any) -> dict[str, Any]:
    added: dict[str, Any] = world(ops.AddMemory(text, namespace=namespace), **envelope)
    return added


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_changes_are_told_in_order_with_all_that_is_known_of_them(world: World) -> None:
    said = {"agent": "planner", "session": "s-1", "trace": "t-1", "task": "plan-7"}
    added = add(world, "Tea is green", **said)
    world(ops.UpdateMemory(added["memory_id"], {"content": "Tea is black"}))
    page = read(world)
    first, second = page["changes"]
    assert {name: value for name, value in first.items() if name != "at"} == {
        "seq": added["seq"],
        "operation": "add_memory",
        "subject": added["memory_id"],
        "namespace": "user:alice",
        "version_before": None,
        "version_after": 1,
        "identity": "local",
        "agent": "planner",
        "session_id": "s-1",
        "task_id": "plan-7",
        "trace": "t-1",
    }
    assert (second["operation"], second["version_after"]) == ("update_memory", 2)
    assert (page["next_seq"], page["seq"], page["complete"]) == (2, 2, True)
    assert read(world, 1)["changes"] == [second]
    assert (seqs(read(world, None)), read(world, None)["next_seq"]) == ([], 2)


def test_pages_lead_on_without_a_gap_and_after_a_restart_too(world: World) -> None:
    world(ops.BatchAddMemories([{"content": f"Fact {n}"} for n in range(25)]))
    for _ in range(2):
        seen, after = [], 0
        while True:
            page = read(world, after, limit=10)
            seen += seqs(page)
            after = page["next_seq"]
            if page["complete"]:
                break
        assert seen == list(range(1, 26))
        world.restart()


def test_what_does_not_fit_is_passed_by_and_not_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "STRETCH_ENTRIES", 4)
    monkeypatch.setattr(pages, "STRETCHES_MAX", 2)
    for number in range(20):
        add(world, f"Noise {number}", "app:noise")
    wanted = add(world, "A signal")
    for _ in range(2):  # from memory, then out of the storage
        after, looks = 0, 0
        while not (page := read(world, after, namespace="user:alice"))["changes"]:
            assert page["next_seq"] > after and not page["complete"]
            after = page["next_seq"]
            looks += 1
        assert seqs(page) == [wanted["seq"]] and page["complete"]
        assert page["next_seq"] == page["seq"]
        world.restart()
    assert looks == 2


FILTERS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "a namespace and what is below it": ({"namespace": "user:alice"}, [1, 2, 5]),
    "operations": ({"operations": ["delete_memory", "put"]}, [4, 5]),
    "an agent": ({"agent": "planner"}, [1]),
    "a session": ({"session_id": "s-1"}, [2]),
    "a task": ({"task_id": "plan"}, [3]),
    "several at once": ({"namespace": "user:alice", "operations": ["add_memory"]}, [1, 2]),
    "nothing": ({"agent": "nobody"}, []),
}


def test_filters_mean_the_same_in_memory_and_in_the_storage(world: World) -> None:
    first = add(world, "One", agent="planner")["memory_id"]
    add(world, "Two", "user:alice:notes", session="s-1")
    add(world, "Three", "user:alice2", task="plan")
    world(ops.Put("app:default", "k", 1))
    world(ops.DeleteMemory(first))
    for _ in range(2):
        for name, (filters, expected) in FILTERS.items():
            assert seqs(read(world, **filters)) == expected, name
        assert seqs(read(world, subject=first)) == [1, 5]
        world.restart()


def test_one_is_told_only_of_what_one_may_read_and_of_nothing_refused(world: World) -> None:
    add(world, "Mine")
    add(world, "Foreign", "user:bob")
    world(ops.CreateIdentity("critic"))
    with pytest.raises(errors.Forbidden):
        world(ops.AddMemory("An intruder", namespace="user:bob"), ALICE)
    for _ in range(2):
        assert [c["namespace"] for c in read(world, who=ALICE)["changes"]] == ["user:alice"]
        assert seqs(read(world, who=NOBODY)) == []
        everything = read(world)["changes"]
        assert [c["operation"] for c in everything] == ["add_memory"] * 2 + ["create_identity"]
        assert seqs(read(world, who=ALICE, namespace="user:bob")) == []
        world.restart()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"after_seq": 1_000}, errors.ChangesAhead),
        ({"after_seq": -1}, errors.InvalidArgument),
        ({"limit": 0}, errors.InvalidArgument),
        ({"limit": 1_000_000}, errors.LimitExceeded),
        ({"wait_s": 31.0}, errors.InvalidArgument),
        ({"wait_s": float("nan")}, errors.InvalidArgument),
        ({"operations": []}, errors.InvalidArgument),
        ({"namespace": "alice"}, errors.InvalidArgument),
        ({"agent": "x" * 1_000}, errors.LimitExceeded),
    ],
)
def test_what_cannot_be_asked_is_refused(
    world: World, options: dict[str, Any], error: type[errors.RecollectError]
) -> None:
    with pytest.raises(error) as caught:
        world(ops.ReadChanges(**options))
    if error is errors.ChangesAhead:
        assert caught.value.details == {"after_seq": 1_000, "seq": 0}


def test_one_who_waits_is_woken_by_what_fits_and_by_nothing_else(world: World) -> None:
    room = world.orchestrator.dispatcher._room

    async def scene() -> None:
        waiting = [
            asyncio.create_task(world.ask(ops.ReadChanges(0, wait_s=WAIT_S, **wanted), who))
            for wanted, who in (
                ({"namespace": "user:alice"}, LOCAL),
                ({}, ALICE),
                ({"operations": ["put"]}, LOCAL),
                ({}, NOBODY),
            )
        ]
        await until(lambda: room.count == 4)
        assert world.orchestrator.dispatcher.in_flight == 0
        await world.ask(ops.AddMemory("Elsewhere", namespace="user:bob"))
        await world.ask(ops.AddMemory("Here", namespace="user:alice:notes"))
        for woken in waiting[:2]:
            page = await woken
            assert [c["namespace"] for c in page["changes"]] == ["user:alice:notes"]
            assert (page["next_seq"], page["complete"]) == (2, True)
        await world.ask(ops.Put("app:default", "k", 1))
        assert seqs(await waiting[2]) == [3]
        assert room.count == 1 and not waiting[3].done()
        # Whoever waits for nothing ends with the orchestrator.
        await world.orchestrator.dispatcher.drained()
        page = await waiting[3]
        assert (page["status"], page["changes"], page["next_seq"]) == ("success", [], 3)

    world.run(scene())


def test_a_wait_that_ends_in_vain_has_passed_by_what_did_not_fit(world: World) -> None:
    async def scene() -> Any:
        waiting = asyncio.create_task(
            world.ask(ops.ReadChanges(0, wait_s=0.3, namespace="user:alice"))
        )
        await until(lambda: world.orchestrator.dispatcher._room.count == 1)
        await world.ask(ops.AddMemory("Elsewhere", namespace="user:bob"))
        return await waiting

    page = world.run(scene())
    assert (page["changes"], page["next_seq"], page["complete"]) == ([], 1, True)


@pytest.fixture
def small(storage_url: str, tmp_path: Path) -> Iterator[World]:
    """A world in which two may wait, and two requests be in work."""
    network = NetworkSettings(waiting_max=2, in_flight_max=2)
    settings = Settings(network=network, embedding=EmbeddingSettings(provider="hashed"))
    world = World(storage_url, tmp_path / "data", settings)
    yield world
    world.close()


def test_those_who_wait_are_bounded_and_hold_up_nobody(small: World) -> None:
    async def scene() -> None:
        ask = small.ask
        waiting = [asyncio.create_task(ask(ops.ReadChanges(0, wait_s=WAIT_S))) for _ in range(2)]
        await until(lambda: small.orchestrator.dispatcher._room.count == 2)
        refused = await ask(ops.ReadChanges(0, wait_s=WAIT_S))
        assert refused["error"]["details"]["limit"] == "network.waiting_max"
        assert refused["error"]["retryable"]
        assert (await ask(ops.ReadChanges(0)))["status"] == "success"
        assert (await ask(ops.AddMemory("Work goes on")))["status"] == "success"
        assert [seqs(await woken) for woken in waiting] == [[1], [1]]
        assert small.orchestrator.dispatcher.describe()["waiting"] == 0

    small.run(scene())


def test_a_wait_never_outlives_its_deadline(world: World) -> None:
    answer = world(ops.ReadChanges(0, wait_s=30.0), deadline_ms=world.clock.now_us() // 1000 + 200)
    assert answer["changes"] == []


def test_a_key_revoked_and_grants_changed_end_the_wait(world: World) -> None:
    """The keyring says who may what at this moment; whoever waits is told when that changes."""
    key = "K" * 40
    world(ops.CreateIdentity("carol", key))
    world(ops.GrantAccess("carol", "user:alice", "read"))
    carol = Identity("carol", Grants((Grant("user:alice", "read"),)), key)

    async def refused(change: Any, who: Identity) -> str:
        waiting = asyncio.create_task(world.ask(ops.ReadChanges(wait_s=WAIT_S), who))
        await until(lambda: world.orchestrator.dispatcher._room.count == 1)
        assert (await world.ask(change))["status"] == "success"
        code: str = (await waiting)["error"]["code"]
        return code

    assert world.run(refused(ops.GrantAccess("carol", "user:bob", "read"), carol)) == "overloaded"
    both = (*carol.grants.grants, Grant("user:bob", "read"))
    more = msgspec.structs.replace(carol, grants=Grants(both))
    assert world.run(refused(ops.RevokeAccess("carol"), more)) == "unauthenticated"


def test_what_another_orchestrator_writes_wakes_too(storage_url: str, tmp_path: Path) -> None:
    if storage_url == "sqlite":
        pytest.skip("SQLite has one orchestrator")
    world, other = World(storage_url, tmp_path / "one"), World(storage_url, tmp_path / "two")
    try:

        async def scene() -> list[int]:
            waiting = asyncio.create_task(world.ask(ops.ReadChanges(wait_s=WAIT_S)))
            await until(lambda: world.orchestrator.dispatcher._room.count == 1)
            await asyncio.to_thread(add, other, "From elsewhere")
            page = await waiting
            first = seqs(page)
            waiting = asyncio.create_task(
                world.ask(ops.ReadChanges(page["next_seq"], wait_s=WAIT_S, namespace="user:alice"))
            )
            await until(lambda: world.orchestrator.dispatcher._room.count == 1)
            await asyncio.to_thread(add, other, "Passed by", "user:bob")
            await world.ask(ops.AddMemory("From here", namespace="user:alice"))
            return [*first, *seqs(await waiting)]

        assert world.run(scene()) == [1, 3]
    finally:
        other.close()
        world.close()
