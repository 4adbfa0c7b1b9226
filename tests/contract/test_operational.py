"""Operational memory: events, metrics, active tasks, and what a critical event leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from redis import Redis

from recollect.config import OperationalSettings
from recollect.config.settings import EmbeddingSettings, RedisSettings, Settings
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.operational import critical
from recollect.protocol import operations as ops
from recollect.protocol.errors import (
    Forbidden,
    IdempotencyConflict,
    InvalidArgument,
    LimitExceeded,
)
from tests.harness.redis import RedisServer
from tests.harness.worlds import World

ALICE = Identity("alice", Grants((Grant("user:alice", "write"),)))
BOB = Identity("bob", Grants((Grant("user:bob", "write"), Grant("app:board", "read"))))
SMALL = Settings(
    embedding=EmbeddingSettings(provider="hashed"),
    operational=OperationalSettings(
        events_max=5, event_bytes_max=1000, metrics_max=3, active_tasks_max=3, keys_max=4
    ),
)


@pytest.fixture
def small(storage_url: str, tmp_path: Path) -> Iterator[World]:
    """One in which little has room."""
    world = World(storage_url, tmp_path / "data", SMALL)
    yield world
    world.close()


def categories(world: World, identity: Identity | None = None, **given: object) -> list[str]:
    asked = ops.RecentEvents(**given)  # type: ignore[arg-type]
    answer = world(asked, identity) if identity else world(asked)
    return [event["category"] for event in answer["events"]]


def test_events_come_newest_first_with_all_that_was_said(world: World) -> None:
    first = world(ops.PushEvent("build", {"ok": True}), task="t-1", agent="ci", session="s-1")
    world(ops.PushEvent("deploy", "to production"))
    answer = world(ops.RecentEvents())
    assert answer["count"] == 2
    newest, oldest = answer["events"]
    assert (newest["category"], newest["data"]) == ("deploy", "to production")
    assert oldest == {
        "id": first["event_id"],
        "at": first["at"],
        "namespace": "app:default",
        "category": "build",
        "data": {"ok": True},
        "critical": False,
        "author": "ci",
        "task_id": "t-1",
        "session_id": "s-1",
    }
    assert first["durable"] is False
    assert "memory_id" not in first


def test_events_are_found_by_category_and_namespace(world: World) -> None:
    world(ops.PushEvent("build", 1, namespace="app:a"))
    world(ops.PushEvent("build", 2, namespace="app:a:b"))
    world(ops.PushEvent("deploy", 3, namespace="app:ab"))
    assert categories(world, category="build") == ["build", "build"]
    assert categories(world, namespace="app:a") == ["build", "build"]
    assert categories(world, namespace="app:ab") == ["deploy"]
    assert categories(world, category="nothing") == []
    assert categories(world, count=1) == ["deploy"]


def test_the_oldest_event_makes_room(small: World) -> None:
    for number in range(8):
        small(ops.PushEvent(f"event-{number}"))
    assert categories(small) == [f"event-{number}" for number in (7, 6, 5, 4, 3)]
    counts = small(ops.SystemSnapshot())["events"]
    assert (counts["kept"], counts["kept_max"]) == (5, 5)


def test_a_scoped_reader_gets_as_many_events_as_there_are(world: World) -> None:
    for number in range(3):
        world(ops.PushEvent("mine", number, namespace="user:alice"), ALICE)
    for number in range(20):
        world(ops.PushEvent("theirs", number, namespace="user:bob"), BOB)
    world(ops.PushEvent("notice", namespace="app:board"))
    assert categories(world, ALICE, count=3) == ["mine"] * 3
    assert categories(world, ALICE, count=50) == ["mine"] * 3
    assert categories(world, BOB, count=2) == ["notice", "theirs"]
    assert categories(world, ALICE, namespace="user:bob") == []


def test_nobody_pushes_where_they_may_not_write(world: World) -> None:
    for intrusion in (
        ops.PushEvent("intrusion", namespace="app:board"),
        ops.PushEvent("intrusion", critical=True, namespace="app:board"),
        ops.UpdateMetric("intrusions", 1, namespace="app:board"),
        ops.SetActiveTask("intrusion", {}, namespace="app:board"),
        ops.SetActiveTask("intrusion", namespace="app:board"),
    ):
        with pytest.raises(Forbidden):
            world(intrusion, BOB)
    assert categories(world) == []


def test_a_critical_event_is_a_memory_that_can_be_found(world: World) -> None:
    pushed = world(
        ops.PushEvent("outage", {"service": "ingest", "minutes": 12}, True, namespace="app:ops"),
        agent="watcher",
        task="t-9",
    )
    assert pushed["durable"] is True
    assert pushed["memory_id"] == pushed["event_id"]
    memory = world(ops.GetMemory(pushed["memory_id"]))["memory"]
    assert (memory["collection"], memory["memory_tier"]) == ("events", "medium")
    assert memory["namespace"] == "app:ops"
    for said in ("outage", "ingest", "12"):
        assert said in memory["content"]
    found = world(ops.SemanticSearch("outage of ingest", collections=["events"]))["results"]
    assert [result["id"] for result in found] == [pushed["memory_id"]]
    [event] = world(ops.RecentEvents())["events"]
    assert event["id"] == pushed["event_id"]
    assert event["critical"] is True
    assert event["data"] == {"service": "ingest", "minutes": 12}


def test_critical_events_are_back_after_a_restart_and_others_are_not(small: World) -> None:
    small(ops.PushEvent("first", {"n": 1}, True), task="t-1", session="s-1", agent="a")
    small(ops.PushEvent("passing"))
    small(ops.PushEvent("second", critical=True))
    before = [event for event in small(ops.RecentEvents())["events"] if event["critical"]]
    small.restart()
    assert small(ops.RecentEvents())["events"] == before
    assert small(ops.SystemSnapshot())["events"]["critical"] == 2


def test_a_critical_event_that_was_pushed_out_is_in_working_memory(small: World) -> None:
    pushed = small(ops.PushEvent("outage", "the disk is full", True))
    for number in range(6):
        small(ops.PushEvent(f"event-{number}"))
    assert "outage" not in categories(small)
    memory = small(ops.GetMemory(pushed["memory_id"]))["memory"]
    assert "the disk is full" in memory["content"]


@pytest.mark.parametrize("ending", [ops.DeleteMemory, ops.Purge])
def test_an_event_whose_memory_is_gone_is_gone_and_others_move_up(
    world: World, ending: type[ops.DeleteMemory] | type[ops.Purge]
) -> None:
    world(ops.PushEvent("older"))
    pushed = world(ops.PushEvent("outage", critical=True))
    world(ops.PushEvent("newer"))
    world(ending(pushed["memory_id"]))
    assert categories(world, count=2) == ["newer", "older"]
    world.restart()
    assert categories(world) == []


def test_events_whose_memories_are_gone_are_not_counted(world: World) -> None:
    pushed = [world(ops.PushEvent(f"outage-{number}", critical=True)) for number in range(4)]
    world(ops.DeleteMemory(pushed[0]["memory_id"]))
    world(ops.DeleteMemory(pushed[2]["memory_id"]))
    counted = world(ops.SystemSnapshot(events=1))["events"]
    assert (counted["kept"], counted["critical"]) == (2, 2)
    assert counted["by_category"] == {"outage-1": 1, "outage-3": 1}


def test_a_start_takes_up_no_more_critical_events_than_have_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(critical, "READ_AT_ONCE", 2)
    for number in range(7):
        world(ops.PushEvent(f"e{number}", "x" * 38, True))

    def taken_up(count: int, bytes_max: int) -> list[str]:
        reading = world.storage.read(
            lambda session: critical.latest(session, world.clock.now_us(), count, bytes_max)
        )
        return [event.category for event in world.run(asyncio.wait_for(reading, 20))]

    assert taken_up(5, 1000) == ["e2", "e3", "e4", "e5", "e6"]
    assert taken_up(10, 1000) == [f"e{number}" for number in range(7)]
    assert taken_up(10, 100) == ["e3", "e4", "e5", "e6"]


def test_an_event_that_was_purged_without_redis_is_erased_there_at_the_next_start(
    storage_url: str, tmp_path: Path
) -> None:
    with RedisServer() as server:
        shared = msgspec.structs.replace(SMALL, redis=RedisSettings(server.url, timeout_ms=5_000))
        world = World(storage_url, tmp_path / "data", shared)
        try:
            kept = world(ops.PushEvent("kept", critical=True))
            gone = world(ops.PushEvent("outage", "quixotic-zebra", True))
            world.settings = msgspec.structs.replace(world.settings, redis=RedisSettings("off"))
            world.restart()
            world(ops.Purge(gone["memory_id"]))
            world.settings = msgspec.structs.replace(world.settings, redis=shared.redis)
            world.restart()
        finally:
            world.close()
        with Redis.from_url(server.url) as client:
            [events] = client.keys("*:events")
            [(_, entry)] = client.xrange(events)
        assert entry[b"i"].decode() == kept["event_id"]


@pytest.mark.parametrize("critical", [False, True])
def test_a_retry_pushes_once(world: World, critical: bool) -> None:
    pushing = ops.PushEvent("build", {"a": 1, "b": 2}, critical)
    first = world(pushing, key="k-1")
    assert world(pushing, key="k-1") == first
    assert world(ops.PushEvent("build", {"b": 2, "a": 1}, critical), key="k-1") == first
    assert categories(world) == ["build"]
    for other in (ops.PushEvent("build", 2, critical), ops.PushEvent("build", {"a": 1}, True)):
        with pytest.raises(IdempotencyConflict):
            world(other, key="k-1")
    with pytest.raises(IdempotencyConflict):
        world(ops.UpdateMetric("build", 1), key="k-1")
    assert categories(world) == ["build"]
    # The same key of somebody else is another key.
    world(ops.PushEvent("build", namespace="user:alice"), ALICE, key="k-1")
    assert categories(world) == ["build", "build"]


def test_a_critical_event_is_pushed_once_across_a_restart(world: World) -> None:
    pushing = ops.PushEvent("outage", critical=True)
    first = world(pushing, key="k-1")
    world.restart()
    assert world(pushing, key="k-1") == first
    assert categories(world) == ["outage"]


def test_a_late_retry_does_not_set_an_old_value_again(small: World) -> None:
    first = small(ops.UpdateMetric("queue", 1), key="k-1")
    small(ops.UpdateMetric("queue", 2), key="k-2")
    assert small(ops.UpdateMetric("queue", 1), key="k-1") == first
    assert [m["value"] for m in small(ops.GetMetrics())["metrics"]] == [2]
    # Only so many keys are remembered.
    for number in range(4):
        small(ops.PushEvent("filler"), key=f"f-{number}")
    small(ops.UpdateMetric("queue", 1), key="k-1")
    assert [m["value"] for m in small(ops.GetMetrics())["metrics"]] == [1]


def test_metrics_have_their_latest_value(world: World) -> None:
    for value in (1, 2.5, "fine", True):
        world(ops.UpdateMetric("health", value), agent="probe")
    world(ops.UpdateMetric("queue", 7, namespace="user:alice"), ALICE)
    answer = world(ops.GetMetrics())
    assert [(m["namespace"], m["key"], m["value"]) for m in answer["metrics"]] == [
        ("app:default", "health", True),
        ("user:alice", "queue", 7),
    ]
    assert answer["metrics"][0]["author"] == "probe"
    assert [m["key"] for m in world(ops.GetMetrics(["queue", "absent"]))["metrics"]] == ["queue"]
    assert [m["key"] for m in world(ops.GetMetrics(), ALICE)["metrics"]] == ["queue"]
    assert world(ops.GetMetrics(), BOB)["count"] == 0


def test_the_metric_set_longest_ago_makes_room(small: World) -> None:
    for key in ("a", "b", "c", "a", "d"):
        small(ops.UpdateMetric(key, 1))
    assert [m["key"] for m in small(ops.GetMetrics())["metrics"]] == ["a", "c", "d"]


def test_a_task_is_active_until_it_has_no_state(world: World) -> None:
    began = world(ops.SetActiveTask("t-1", {"step": 1}))
    world(ops.SetActiveTask("t-2", {"step": 1}, namespace="user:alice"), ALICE)
    changed = world(ops.SetActiveTask("t-1", {"step": 2}), agent="worker")
    listed = world(ops.ActiveTasks())
    assert [task["task_id"] for task in listed["tasks"]] == ["t-1", "t-2"]
    assert listed["tasks"][0] == {
        "namespace": "app:default",
        "task_id": "t-1",
        "state": {"step": 2},
        "since": began["at"],
        "at": changed["at"],
        "author": "worker",
    }
    assert [t["task_id"] for t in world(ops.ActiveTasks(), ALICE)["tasks"]] == ["t-2"]
    assert world(ops.ActiveTasks(1))["count"] == 1
    ended = world(ops.SetActiveTask("t-1"))
    assert ended["active"] is False
    assert world(ops.SetActiveTask("never-there"))["active"] is False
    assert [task["task_id"] for task in world(ops.ActiveTasks())["tasks"]] == ["t-2"]


def test_the_active_task_set_longest_ago_makes_room(small: World) -> None:
    for task_id in ("a", "b", "c", "a", "d"):
        small(ops.SetActiveTask(task_id, {}))
    assert [t["task_id"] for t in small(ops.ActiveTasks())["tasks"]] == ["d", "a", "c"]


def test_a_snapshot_shows_all_that_its_reader_may_see(world: World) -> None:
    world(ops.PushEvent("build", namespace="user:alice"))
    world(ops.PushEvent("build", namespace="user:alice", critical=True))
    world(ops.PushEvent("deploy", namespace="user:bob"))
    world(ops.UpdateMetric("queue", 3, namespace="user:alice"))
    world(ops.SetActiveTask("t-1", {"at": "work"}, namespace="user:bob"))
    whole = world(ops.SystemSnapshot(events=2))
    assert whole["kept_in"] == "process"
    assert "degraded" not in whole
    assert whole["events"] == {
        "kept": 3,
        "kept_max": 10_000,
        "critical": 1,
        "by_category": {"build": 2, "deploy": 1},
    }
    assert [event["category"] for event in whole["latest_events"]] == ["deploy", "build"]
    assert [metric["key"] for metric in whole["metrics"]] == ["queue"]
    assert [task["task_id"] for task in whole["active_tasks"]] == ["t-1"]
    assert whole["active_goals"] == []
    bobs = world(ops.SystemSnapshot(), BOB)
    assert bobs["events"]["by_category"] == {"deploy": 1}
    assert (bobs["metrics"], len(bobs["active_tasks"])) == ([], 1)
    alices = world(ops.SystemSnapshot(namespace="user:alice", events=0))
    assert (alices["events"]["kept"], alices["latest_events"]) == (2, [])
    assert alices["active_tasks"] == []


def test_a_snapshot_shows_active_goals_and_a_task_that_ends_is_active_no_more(
    world: World,
) -> None:
    goal = world(ops.StoreGoal("Have a garden", namespace="user:alice"))
    world(ops.StoreGoal("Have a boat", namespace="user:bob"))
    [shown] = world(ops.SystemSnapshot(), ALICE)["active_goals"]
    assert (shown["id"], shown["description"]) == (goal["goal_id"], "Have a garden")
    for task_id in ("dig", "sow"):
        world(ops.SaveTask(f"To {task_id}", task_id, namespace="user:alice"))
        world(ops.SetActiveTask(task_id, {}, namespace="user:alice"))
    world(ops.UpdateTaskStatus("dig", "completed", namespace="user:alice"))
    active = world(ops.SystemSnapshot())["active_tasks"]
    assert [task["task_id"] for task in active] == ["sow"]


def test_what_is_no_event_metric_or_task_is_refused_and_leaves_nothing(small: World) -> None:
    nan = float("nan")
    for wrong in (
        ops.PushEvent("Not A Category"),
        ops.PushEvent("ok", nan),
        ops.PushEvent("ok", {"a": "b\x00"}, True),
        ops.UpdateMetric("", 1),
        ops.UpdateMetric("ok", nan),
        ops.UpdateMetric("a\x00b", 1),
        ops.UpdateMetric("ok", "a\x00b"),
        ops.SetActiveTask("", {}),
        ops.SetActiveTask("ok", {"a": nan}),
        ops.PushEvent("ok", namespace="nowhere"),
        ops.RecentEvents(0),
        ops.RecentEvents(namespace="nowhere"),
    ):
        with pytest.raises(InvalidArgument):
            small(wrong)
    for large in (
        ops.PushEvent("ok", "x" * 1000),
        ops.PushEvent("ok", "é" * 500, True),
        ops.SetActiveTask("ok", {"state": "x" * 1000}),
    ):
        with pytest.raises(LimitExceeded) as refused:
            small(large)
        assert refused.value.details["limit"] == "operational.event_bytes_max"
    for more in (
        ops.RecentEvents(1001),
        ops.SystemSnapshot(events=1001),
        ops.ActiveTasks(1001),
        ops.GetMetrics(["k"] * 1001),
    ):
        with pytest.raises(LimitExceeded) as refused:
            small(more)
        assert refused.value.details["limit"] == "limits.page_items_max"
    snapshot = small(ops.SystemSnapshot())
    assert (snapshot["events"]["kept"], snapshot["metrics"], snapshot["active_tasks"]) == (
        0,
        [],
        [],
    )
    assert small(ops.Count())["count"] == 0


def test_secrets_come_into_no_event(storage_url: str, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        SMALL, trust=msgspec.structs.replace(SMALL.trust, secrets="mask")
    )
    world = World(storage_url, tmp_path / "data", settings)
    try:
        secret = "ghp_" + "a1B2" * 9
        world(ops.PushEvent("push", {"token": secret}, True))
        world(ops.UpdateMetric("github_token", secret))
        world(ops.SetActiveTask("t-1", {"with": secret}))
        assert secret not in str(world(ops.SystemSnapshot()))
        assert secret not in str(world(ops.ListMemories()))
    finally:
        world.close()
