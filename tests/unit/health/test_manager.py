"""The manager tells each change once, to whoever listens, and truthfully of what it cannot see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from recollect.health.alerts import Alerts
from recollect.health.keeping import History
from recollect.health.manager import HealthManager
from recollect.health.probes.probe import Probe, Sight
from recollect.health.states import Finding, Rules
from recollect.protocol.errors import Unreachable
from recollect.protocol.operations import PushEvent, ReportErrors

GOOD, BAD = Finding("healthy"), Finding("degraded", ("slow",))
GONE = Finding("down", ("no answer",), looks=2)
WITHIN_S = 10.0


class Bus:
    """A line to an orchestrator that is away at first."""

    endpoint = "nowhere"

    def __init__(self) -> None:
        self.away = True
        self.events: list[dict[str, Any]] = []
        self.errors: list[str] = []

    async def call(self, operation: Any) -> Any:
        if self.away:
            raise Unreachable("Nobody listens.")
        if isinstance(operation, PushEvent):
            self.events.append(operation.data)
        if isinstance(operation, ReportErrors):
            self.errors += [error.message for error in operation.errors]
        return {"status": "success"}


class Seen:
    """A probe that is told what to find; the tests give findings by hand."""

    interval_s = timeout_s = 3600.0

    def __init__(self, name: str, *, through_orchestrator: bool) -> None:
        self.name = name
        self.through_orchestrator = through_orchestrator

    async def look(self) -> Finding:
        return GOOD

    async def close(self) -> None:
        pass


def alerts_of(bus: Bus, waiting_max: int = 100) -> Alerts:
    return Alerts(bus, None, waiting_max=waiting_max, retry_s=0.01, timeout_s=1.0)


def manager_of(folder: Path, alerts: Alerts) -> HealthManager:
    probes: list[Probe] = [
        Seen("orchestrator", through_orchestrator=False),
        Seen("redis", through_orchestrator=True),
    ]
    return HealthManager(
        probes,
        Sight(),
        alerts,
        History(folder, 10),
        Rules(3, 2),
        endpoint=lambda: "nowhere",
        now_s=lambda: 1_800_000_000.0,
    )


def states(manager: HealthManager) -> dict[str, str]:
    return {part["name"]: part["state"] for part in manager.status()["components"]}


def looked(manager: HealthManager, name: str, *findings: Finding) -> None:
    for finding in findings:
        manager.take(name, finding)


async def changes_while_the_bus_is_away(folder: Path) -> None:
    bus = Bus()
    alerts = alerts_of(bus)
    manager = manager_of(folder, alerts)
    assert (manager.state, states(manager)) == ("down", {"orchestrator": "down"})
    looked(manager, "orchestrator", GOOD)
    looked(manager, "redis", GOOD, BAD, BAD)
    assert manager.state == "healthy"
    looked(manager, "redis", BAD)
    assert (manager.state, states(manager)["redis"]) == ("degraded", "degraded")
    looked(manager, "redis", GOOD, GOOD)
    looked(manager, "orchestrator", GONE, GONE, GONE)
    assert (manager.state, states(manager)["redis"]) == ("down", "degraded")
    assert manager.metrics is None
    looked(manager, "orchestrator", GOOD, GOOD)
    assert (manager.state, states(manager)["redis"]) == ("healthy", "healthy")
    talking = asyncio.create_task(alerts.run())
    await asyncio.sleep(0.05)
    assert bus.events == []
    bus.away = False
    async with asyncio.timeout(WITHIN_S):
        while len(bus.events) < 4:
            await asyncio.sleep(0.01)
    talking.cancel()
    told = [(event["component"], event["after"], event["overall"]) for event in bus.events]
    assert told == [
        ("redis", "degraded", "degraded"),
        ("redis", "healthy", "healthy"),
        ("orchestrator", "down", "down"),
        ("orchestrator", "healthy", "healthy"),
    ]
    assert bus.errors == ["The redis is degraded.", "The orchestrator is down."]


def test_each_change_is_told_once_and_in_order_when_the_bus_is_back(tmp_path: Path) -> None:
    asyncio.run(changes_while_the_bus_is_away(tmp_path))


def test_a_restarted_manager_goes_on_from_how_things_stood(tmp_path: Path) -> None:
    async def body() -> None:
        first = manager_of(tmp_path, alerts_of(Bus()))
        looked(first, "orchestrator", GOOD, GONE, GONE)
        again = manager_of(tmp_path, alerts_of(Bus()))
        assert again.state == "down"
        assert again.status()["components"][0]["reasons"] == ["no answer"]
        looked(again, "orchestrator", GONE, GONE, GOOD, GOOD)
        assert [change["after"] for change in again.status()["history"]] == ["healthy", "down"]

    asyncio.run(body())


def test_so_many_alerts_wait_for_the_bus_and_no_more(tmp_path: Path) -> None:
    async def body() -> None:
        bus = Bus()
        alerts = alerts_of(bus, waiting_max=3)
        manager = manager_of(tmp_path, alerts)
        looked(manager, "orchestrator", GOOD)
        for _ in range(5):
            looked(manager, "orchestrator", GONE, GONE, GOOD, GOOD)
        bus.away = False
        talking = asyncio.create_task(alerts.run())
        async with asyncio.timeout(WITHIN_S):
            while len(bus.events) < 3:
                await asyncio.sleep(0.01)
        talking.cancel()
        assert [event["after"] for event in bus.events] == ["healthy", "down", "healthy"]

    asyncio.run(body())
