"""Every process is killed and stopped in turn, under load: the system heals, and says how it is."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import psutil
import pytest

from recollect import MemoryClient
from tests.faults.tools.acknowledgements import AcknowledgementLog
from tests.faults.tools.writers import Writers
from tests.system.cli.commands import ENDS_WITHIN_S
from tests.system.whole.system import ROLES, WholeSystem

SEED = 20260131


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeSystem]:
    running = WholeSystem(tmp_path_factory.mktemp("whole"))
    try:
        running.wait_ready()
        running.wait_healthy()
        yield running
    finally:
        running.close()


def test_it_says_where_everything_is(system: WholeSystem) -> None:
    system.wait_ready()
    gateway = json.loads((system.data / "gateway.json").read_text())
    places = (system.url, f"{gateway['url']}/docs", gateway["mcp_url"], gateway["grpc"])
    assert all(place in system.output() for place in places)
    watched = {"orchestrator", "scheduler", "gateway", "canary", "redis"}
    system.wait_until(
        lambda: watched <= {component["name"] for component in system.status()["components"]}
    )


@pytest.mark.timeout(240)
def test_each_process_is_killed_in_turn_and_nothing_is_lost(system: WholeSystem) -> None:
    log = AcknowledgementLog()
    with Writers(system.endpoint, log, seed=SEED, count=2) as writers:
        log.wait_for_more(20)
        for role in (*ROLES, "redis"):
            before = system.redis() if role == "redis" else system.running(role)
            assert before is not None
            before.kill()
            system.wait_until(lambda role=role, pid=before.pid: replaced(system, role, pid))  # type: ignore[misc]
            system.wait_healthy()
            log.wait_for_more(20)
        writers.stop()
    assert not writers.failures
    assert log.check(system.endpoint) == []
    output = system.output()
    for role in ROLES:
        assert f"The {role} was ended by SIGKILL; starting it again" in output
        assert f"The {role} runs again" in output


def replaced(system: WholeSystem, role: str, pid: int) -> bool:
    found = system.redis() if role == "redis" else system.serving(role)
    return found is not None and found.pid != pid


@pytest.mark.parametrize("role", ["orchestrator", "scheduler", "gateway", "redis"])
def test_what_hangs_is_told_and_so_is_that_it_goes_on(system: WholeSystem, role: str) -> None:
    """A process that is stopped looks alive to its supervisor; whoever watches knows better."""
    hanging = system.redis() if role == "redis" else system.running(role)
    assert hanging is not None
    hanging.send_signal(signal.SIGSTOP)
    try:
        system.wait_until(lambda: system.component(role).get("state") in ("degraded", "down"))
        told = system.component(role)
        assert told["reasons"], told
        if role == "orchestrator":
            assert system.status()["state"] == "down"
    finally:
        hanging.send_signal(signal.SIGCONT)
    system.wait_healthy()
    after = [entry["after"] for entry in system.status()["history"] if entry["component"] == role]
    assert "healthy" in after and {"degraded", "down"} & set(after), after


def test_ctrl_c_stops_all_and_leaves_nothing_behind(system: WholeSystem) -> None:
    """The last one here: nothing runs afterwards."""
    with MemoryClient(system.endpoint) as client:
        stored = client.add_memory("The last word before the end.")["memory_id"]
    processes = system.all()
    assert "redis" in processes
    system.signal(signal.SIGINT)
    assert system.wait_ended() == 0, system.output()
    _, alive = psutil.wait_procs(list(processes.values()), ENDS_WITHIN_S)
    assert not alive
    left = {path.suffix for path in system.data.rglob("*")}
    assert ".sock" not in left and ".pid" not in left
    assert not [path for path in system.data.glob("*.json")], "somebody still says that it serves"
    assert stored
