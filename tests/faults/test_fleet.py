"""Three orchestrators on one database: any of them may die, and so may the database."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from recollect import MemoryClient
from tests.faults.fleet import Agents, Orchestrators, stored
from tests.faults.polling import wait_for
from tests.harness.gateways import REST_ALONE, GatewayProcess
from tests.harness.health import WITHOUT_DASHBOARD, HealthProcess
from tests.system.cli.commands import CommandLine

KILLED = "project:killed"
ROLLED = "project:rolled"
MORE = 4
PLACES = ("after_commit", "before_reply", "after_commit")
PASSES = 20
HEARD_WITHIN_S = 20.0


class Listener(threading.Thread):
    """Follows the feed through all of it."""

    def __init__(self, endpoints: list[str], namespace: str) -> None:
        super().__init__(daemon=True)
        self._client = MemoryClient(endpoints=endpoints)
        self._changes = self._client.subscribe(namespace=namespace, operations=["add_memory"])
        self.heard: list[tuple[int, str]] = []
        self.start()

    def run(self) -> None:
        for change in self._changes:
            self.heard.append((change["seq"], change["subject"]))

    def check(self, told: Iterable[str]) -> None:
        """It was told of all of them, each once and in order."""
        wait_for(
            lambda: {subject for _, subject in self.heard} >= set(told),
            within_s=HEARD_WITHIN_S,
            what="all changes heard",
        )
        self._client.close()
        self.join(HEARD_WITHIN_S)
        numbers = [seq for seq, _ in self.heard]
        assert numbers == sorted(set(numbers))
        assert Counter(subject for _, subject in self.heard) == Counter(list(told))


def check(fleet: Orchestrators, agents: Agents, listener: Listener) -> None:
    """Nothing is lost, nothing is doubled, and every orchestrator and the feed say so."""
    assert agents.wrong == []
    told = {one.memory_id: one.content for all_of in agents.written.values() for one in all_of}
    assert len(told) == sum(len(written) for written in agents.written.values())
    for endpoint in fleet.endpoints:
        assert stored(endpoint, agents.namespace) == told
    listener.check(told)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrators]:
    with Orchestrators(tmp_path_factory.mktemp("fleet")) as running:
        yield running


@pytest.mark.timeout(180)
def test_each_orchestrator_is_killed_one_is_stopped_and_the_database_crashes_under_load(
    fleet: Orchestrators,
) -> None:
    listener = Listener(fleet.endpoints, KILLED)
    with Agents(fleet.endpoints, KILLED) as agents:
        agents.wait_for_more(MORE)
        for process, place in zip(fleet.processes, PLACES, strict=True):
            process.kill()
            agents.wait_for_more(MORE)
            # Its clients find it again, and it dies with what it has written, but not answered.
            process.start(wait=False, RECOLLECT_FAILPOINTS=f"{place}:{PASSES}")
            assert process.wait_ended() == -9, process.log()
            process.start()
            agents.wait_for_more(MORE)
        # One that only stands still is noticed by its silence.
        fleet.processes[0].signal(signal.SIGSTOP)
        agents.wait_for_more(MORE)
        fleet.processes[0].signal(signal.SIGCONT)
        fleet.postgres.crash()
        fleet.postgres.start()
        agents.wait_for_more(MORE)
        agents.wait_for_all_healthy()
    check(fleet, agents, listener)


@pytest.mark.timeout(180)
def test_a_rolling_restart_under_load_fails_no_request(fleet: Orchestrators) -> None:
    listener = Listener(fleet.endpoints, ROLLED)
    with Agents(fleet.endpoints, ROLLED) as agents:
        agents.wait_for_more(MORE)
        for process in fleet.processes:
            assert process.stop() == 0
            process.start()
        agents.wait_for_more(MORE)
        agents.wait_for_all_healthy()
    assert agents.failed == []
    check(fleet, agents, listener)


@pytest.mark.timeout(180)
def test_what_stands_beside_them_goes_on_while_one_is_away(
    fleet: Orchestrators, tmp_path: Path
) -> None:
    endpoints = ",".join(fleet.endpoints)
    through_settings = {"RECOLLECT_CLIENT_ENDPOINTS": json.dumps(fleet.endpoints)}
    recollect = CommandLine(tmp_path, endpoints)
    (tmp_path / "data").mkdir()
    with (
        GatewayProcess(tmp_path / "data", env={**REST_ALONE, **through_settings}) as gateway,
        gateway.client() as http,
        HealthProcess(tmp_path / "data", endpoints, env=WITHOUT_DASHBOARD) as health,
    ):
        health.until(lambda: health.states().get("endpoints") == "healthy", "all answer")
        process = fleet.processes[0]
        process.kill()
        for number in range(6):
            added = http.post("/v1/memories", json={"content": f"beside {number}"})
            assert added.status_code == 200, added.text
            memory_id = added.json()["memory_id"]
            assert http.get(f"/v1/memories/{memory_id}").status_code == 200
        assert recollect("add", "by hand").code == 0
        health.until(lambda: health.states().get("endpoints") == "degraded", "one is missed")
        assert health.states()["orchestrator"] != "down"
        process.start()
        health.until(lambda: health.states().get("endpoints") == "healthy", "all are back")
