"""What probes find, asked of an orchestrator on every storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.config import HealthSettings
from recollect.config.settings import Settings
from recollect.health.clients import Line
from recollect.health.dashboard.searching import Question
from recollect.health.figures import Sample
from recollect.health.keeping import Sizes
from recollect.health.probes.breakers import BreakersProbe
from recollect.health.probes.canary import CanaryProbe
from recollect.health.probes.index import IndexProbe
from recollect.health.probes.orchestrator import OrchestratorProbe
from recollect.health.probes.probe import NotWatched, Sight
from recollect.health.probes.redis import RedisProbe
from recollect.health.probes.scheduler import SchedulerProbe
from recollect.orchestrator.search.vectors import FaissIndex
from recollect.protocol import operations as ops
from recollect.protocol.errors import from_body
from recollect.protocol.operation import Operation
from recollect.protocol.own_namespaces import HEALTH_NAMESPACE
from tests.harness.worlds import World

OFTEN = {"interval_s": 1.0, "timeout_s": 5.0}


class WorldLine:
    """A line into an orchestrator of the same process."""

    endpoint = "inproc"

    def __init__(self, world: World) -> None:
        self._world = world

    async def call(self, operation: Operation[Any]) -> Any:
        plain = msgspec.structs.replace(operation, timeout=None, idempotency_key=None)
        body = await self._world.ask(plain)
        if body["status"] == "error":
            raise from_body(body["error"])
        return body


@pytest.fixture
def line(world: World) -> Line:
    return WorldLine(world)


def now_s(world: World) -> float:
    return world.clock.now_us() / 1e6


def sight_of(world: World) -> Sight:
    sight = Sight()
    sight.sample, sight.answers = Sample(now_s(world), world(ops.Metrics())), True
    return sight


def test_a_canary_sings_and_leaves_nothing(world: World, line: Line) -> None:
    probe = CanaryProbe(line, "test", **OFTEN, slow_ms=60_000)
    world(ops.AddMemory("The tide is low at noon"))
    for _ in range(3):
        assert world.run(probe.look()).state == "healthy"
    assert world(ops.Count())["count"] == 1
    assert world(ops.ListMemories(include_deleted=True))["count"] == 2
    world.run(probe.close())
    assert world(ops.ListMemories(include_deleted=True))["count"] == 1


def test_a_canary_that_somebody_took_is_told_of_and_sent_anew(world: World, line: Line) -> None:
    probe = CanaryProbe(line, "test", **OFTEN, slow_ms=60_000)
    assert world.run(probe.look()).state == "healthy"
    [left] = world(ops.ListMemories(include_deleted=True))["memories"]
    world(ops.Purge(left["id"]))
    found = world.run(probe.look())
    assert found.state == "down"
    assert "write" in found.reasons[0]
    assert world.run(probe.look()).state == "healthy"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (HealthSettings(disk_free_mb_min=1 << 30), "of the disk are free"),
        (HealthSettings(growth_mb_per_week_max=1), "grew by"),
        (HealthSettings(), None),
    ],
)
def test_what_runs_short_degrades_the_orchestrator(
    world: World, line: Line, tmp_path: Path, limits: HealthSettings, reason: str | None
) -> None:
    sizes, sight = Sizes(tmp_path), Sight()
    sizes.note(now_s(world) - 3600, -100_000_000)
    settings = Settings(health=limits)
    probe = OrchestratorProbe(line, sight, sizes, settings, lambda: now_s(world))
    found = world.run(probe.look())
    assert found.state == ("degraded" if reason else "healthy")
    assert all(reason in said for said in found.reasons if reason)
    assert sight.answers
    assert found.details["growth_bytes"] > 100_000_000


def test_circuits_of_clients_that_opened_lately_worry_for_a_while(world: World, line: Line) -> None:
    probe = BreakersProbe(
        line,
        sight_of(world),
        interval_s=1.0,
        timeout_s=5.0,
        window_s=60.0,
        now_s=lambda: now_s(world),
    )
    slow = [ops.ErrorReport("timeout", "No answer in time.", 2)]
    world(ops.ReportErrors("client:slow", slow))
    world(ops.ReportErrors("client:recollect-health", [ops.ErrorReport("circuit_open", "Open.")]))
    found = world.run(probe.look())
    assert found.state == "healthy"
    assert [error["source"] for error in found.details["clients"]] == ["client:slow"]
    world(ops.ReportErrors("client:lost", [ops.ErrorReport("circuit_open", "It opened.")]))
    found = world.run(probe.look())
    assert (found.state, "client:lost" in found.reasons[0]) == ("degraded", True)
    world.clock.advance(61)
    assert world.run(probe.look()).state == "healthy"


def test_an_index_that_lost_a_vector_is_repaired_and_that_is_told(world: World, line: Line) -> None:
    told: list[dict[str, Any]] = []
    probe = IndexProbe(line, interval_s=1.0, timeout_s=20.0, repaired=told.append)
    world(ops.AddMemory("The tide is low at noon"))
    world.settle()
    assert (world.run(probe.look()).state, told) == ("healthy", [])
    [(num,)] = world.run(_numbers(world))
    index = world.orchestrator.parts.meanings.current.index
    if isinstance(index, FaissIndex):
        index.remove(num)
    else:
        world.run(_mistake(world, num))
    assert world(ops.SemanticSearch("tide"))["results"] == []
    found = world.run(probe.look())
    assert (found.state, len(told)) == ("healthy", 1)
    assert (told[0]["missing"], told[0]["repaired"]) == (1, 1)
    world.settle()
    assert len(world(ops.SemanticSearch("tide"))["results"]) == 1


async def _mistake(world: World, num: int) -> None:
    """Have the vector of a memory be taken for one of another model."""
    sql = "UPDATE vectors SET model = 'another' WHERE num = ?"
    await world.storage.write(lambda transaction: transaction.execute(sql, (num,)))


async def _numbers(world: World) -> Any:
    return await world.storage.read(lambda session: session.execute("SELECT num FROM memories"))


def test_a_scheduler_is_watched_once_there_was_one(world: World, line: Line) -> None:
    probe = SchedulerProbe(
        line, interval_s=1.0, timeout_s=5.0, late_s_max=60.0, now_s=lambda: now_s(world)
    )
    with pytest.raises(NotWatched):
        world.run(probe.look())
    lease = world(ops.AcquireLease("scheduler", "one", 3600.0))
    job = ops.JobAnnouncement("decay", "Lets memories fade.", True, "0 3 * * *", next_at=None)
    world(ops.AnnounceJobs([job]), fence=f"scheduler/{lease['token']}")
    assert world.run(probe.look()).state == "healthy"
    due = msgspec.structs.replace(job, next_at="2020-01-01T00:00:00Z")
    world(ops.AnnounceJobs([due]), fence=f"scheduler/{lease['token']}")
    found = world.run(probe.look())
    assert (found.state, found.reasons) == ("degraded", ("Jobs are late: decay.",))
    world.clock.advance(3700)
    assert world.run(probe.look()).state == "down"


def test_redis_is_watched_where_there_is_one(world: World) -> None:
    sight = sight_of(world)
    probe = RedisProbe(sight, 1.0)
    assert sight.sample is not None
    for redis, state in (
        ({"state": "ok"}, "healthy"),
        ({"state": "degraded", "reason": "Redis does not answer."}, "degraded"),
    ):
        sight.sample.metrics["redis"] = redis
        assert world.run(probe.look()).state == state
    sight.sample.metrics["redis"] = {"state": "off", "reason": None}
    with pytest.raises(NotWatched):
        world.run(probe.look())


def test_the_newest_on_the_dashboard_are_nobody_elses_than_the_users(world: World) -> None:
    kept = [
        world(ops.AddMemory("Of a user.", namespace=namespace))["memory_id"]
        for namespace in ("user:alice", f"{HEALTH_NAMESPACE}2")
    ]
    for namespace in (HEALTH_NAMESPACE, f"{HEALTH_NAMESPACE}:0190", f"{HEALTH_NAMESPACE}:a:b"):
        world(ops.AddMemory("A canary.", namespace=namespace))
    asked = Question().operation()
    assert isinstance(asked, ops.ListMemories)
    assert [memory["id"] for memory in world(asked)["memories"]] == kept[::-1]
