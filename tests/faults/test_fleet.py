"""Three orchestrators on one database: any of them may die, and so may the database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from recollect import MemoryClient
from tests.faults.fleet import Agents, Orchestrators, stored
from tests.faults.polling import wait_for

KILLED = "project:killed"
ROLLED = "project:rolled"
MORE = 4
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
def test_each_orchestrator_is_killed_and_the_database_crashes_under_load(
    fleet: Orchestrators,
) -> None:
    listener = Listener(fleet.endpoints, KILLED)
    with Agents(fleet.endpoints, KILLED) as agents:
        agents.wait_for_more(MORE)
        for process in fleet.processes:
            process.kill()
            agents.wait_for_more(MORE)
            process.start()
            agents.wait_for_more(MORE)
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
