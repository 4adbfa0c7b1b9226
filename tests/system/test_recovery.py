"""The orchestrator goes away and comes back: calls fail fast, clients recover, nothing is lost."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from recollect.client import Breaker
from recollect.protocol import errors
from tests.harness.clients import KINDS, client_of
from tests.harness.processes import OrchestratorProcess

QUICK_BREAKER = Breaker(fail_max=3, reset_timeout_s=0.05)
RECOVERED_WITHIN_S = 10.0


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_with_nobody_there_a_call_fails_fast_and_says_so(
    kind: str, orchestrator: OrchestratorProcess
) -> None:
    with client_of(kind, orchestrator.endpoint, timeout=60.0) as client:
        client.ping()
        orchestrator.kill()
        began_s = time.monotonic()
        with pytest.raises(errors.TransportError, match="recollect up"):
            client.get_memory("any")
        assert time.monotonic() - began_s < 30.0, "it waited out its whole time"


def test_after_some_failures_the_breaker_refuses_at_once(
    kind: str, orchestrator: OrchestratorProcess
) -> None:
    breaker = Breaker(fail_max=2, reset_timeout_s=60.0)
    with client_of(kind, orchestrator.endpoint, breaker=breaker) as client:
        orchestrator.kill()
        for _ in range(2):
            with pytest.raises(errors.Unreachable):
                client.ping()
        with pytest.raises(errors.CircuitOpen):
            client.ping()
        assert client.get_circuit_breaker_status()["state"] == "open"
        orchestrator.start()
        client.reset_circuit_breaker()
        assert client.ping()["ready"] is True


def test_a_client_recovers_by_itself_when_the_orchestrator_is_back(
    kind: str, orchestrator: OrchestratorProcess
) -> None:
    with client_of(kind, orchestrator.endpoint, breaker=QUICK_BREAKER) as client:
        memory_id = client.add_memory("before the crash")["memory_id"]
        orchestrator.kill()
        for _ in range(4):
            with pytest.raises(errors.TransportError):
                client.get_memory(memory_id)
        orchestrator.start()
        deadline_s = time.monotonic() + RECOVERED_WITHIN_S
        while True:
            try:
                memory = client.get_memory(memory_id)["memory"]
                break
            except errors.TransportError:
                assert time.monotonic() < deadline_s, "it did not recover"
        assert memory["content"] == "before the crash"
        assert client.get_circuit_breaker_status()["state"] == "closed"


def test_what_went_wrong_reaches_the_error_bus_once_the_line_is_up_again(
    kind: str, orchestrator: OrchestratorProcess
) -> None:
    with client_of(
        kind,
        orchestrator.endpoint,
        agent_id="planner",
        breaker=Breaker(fail_max=1, reset_timeout_s=0.05),
    ) as client:
        client.ping()
        orchestrator.signal(signal.SIGSTOP)
        with pytest.raises(errors.RequestTimeout):
            client.ping(timeout=0.2)
        orchestrator.signal(signal.SIGCONT)
        deadline_s = time.monotonic() + RECOVERED_WITHIN_S
        seen: set[str] = set()
        while not {"timeout", "circuit_open"} <= seen:
            assert time.monotonic() < deadline_s, f"the bus knows only of {seen}"
            try:
                seen = {error["code"] for error in client.recent_errors()["errors"]}
            except errors.TransportError:
                continue


def test_the_outbox_keeps_writes_and_delivers_them_once_and_in_order(
    kind: str, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox.db"
    with client_of(kind, orchestrator.endpoint, outbox=outbox, breaker=QUICK_BREAKER) as client:
        client.add_memory("note 0")
        orchestrator.kill()
        for number in range(1, 6):
            assert client.add_memory(f"note {number}")["status"] == "queued"
        assert client.outbox_status()["queued"] == 5
        orchestrator.start()
        client.flush_outbox(30.0)
        assert client.outbox_status()["queued"] == 0
        memories = client.list_memories()["memories"]
        assert [memory["content"] for memory in reversed(memories)] == [
            f"note {number}" for number in range(6)
        ]
