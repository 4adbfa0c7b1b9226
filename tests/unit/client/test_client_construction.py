"""Making a client: cheap, checked, and without touching the network."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from recollect.client import AsyncMemoryClient, Breaker, MemoryClient, Pool, Retry, Timeouts
from recollect.protocol.errors import ClientClosed, InvalidArgument, Unsupported

CLIENTS = [MemoryClient, AsyncMemoryClient]
Client = type[MemoryClient] | type[AsyncMemoryClient]


def test_importing_the_client_imports_nothing_heavy() -> None:
    heavy = ["asyncio", "sqlite3", "pybreaker", "redis", "numpy", "apsw", "faiss", "yaml", "typer"]
    script = (
        "import sys, json, recollect.client\n"
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(out.stdout) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_the_endpoint_is_given_or_from_the_environment_or_on_this_machine(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_ENDPOINT", raising=False)
    assert client().endpoint == "tcp://127.0.0.1:7331"
    monkeypatch.setenv("RECOLLECT_ENDPOINT", "tcp://10.0.0.1:99")
    assert client().endpoint == "tcp://10.0.0.1:99"
    assert client("tcp://10.0.0.2:1").endpoint == "tcp://10.0.0.2:1"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("endpoint", ["localhost:7331", "http://x", "inproc://x", 5])
def test_an_endpoint_that_is_none_is_refused(client: Client, endpoint: Any) -> None:
    with pytest.raises(InvalidArgument, match="endpoint"):
        client(endpoint)


def test_an_endpoint_that_cannot_be_connected_to_is_refused_by_its_name() -> None:
    with MemoryClient("tcp://127.0.0.1:notaport") as client, pytest.raises(InvalidArgument):
        client.ping()


@pytest.mark.parametrize("client", CLIENTS)
def test_who_speaks_can_be_set_and_cleared(client: Client) -> None:
    made = client(agent_id="a", session_id="s", task_id="t")
    assert (made.agent_id, made.session_id, made.task_id) == ("a", "s", "t")
    assert made.set_agent_id("b") == {"status": "success", "agent_id": "b"}
    assert made.set_session_id("t") == {"status": "success", "session_id": "t"}
    assert made.set_task_id("u") == {"status": "success", "task_id": "u"}
    assert made.set_agent_id(None) == {"status": "success", "agent_id": None}
    assert (made.agent_id, made.session_id, made.task_id) == (None, "t", "u")


@pytest.mark.parametrize("name", ["", "x" * 257, 5, b"bytes"])
def test_names_are_checked(name: Any) -> None:
    with MemoryClient() as client:
        with pytest.raises(InvalidArgument, match="agent_id"):
            client.set_agent_id(name)
        with pytest.raises(InvalidArgument, match="session_id"):
            client.set_session_id(name)
        with pytest.raises(InvalidArgument, match="task_id"):
            client.set_task_id(name)
    with pytest.raises(InvalidArgument, match="agent_id"):
        MemoryClient(agent_id=name)


@pytest.mark.parametrize("timeout", [0, -5, float("nan"), float("inf"), sys.maxsize, "5"])
def test_the_timeout_is_checked(timeout: Any) -> None:
    with pytest.raises(InvalidArgument, match="timeout"):
        MemoryClient(timeout=timeout)
    with pytest.raises(InvalidArgument, match="timeout"):
        MemoryClient(timeouts=Timeouts(call_s=timeout))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("timeouts", {"timeouts": 5}),
        ("timeouts.connect_s", {"timeouts": Timeouts(connect_s=0)}),
        ("retry.attempts_max", {"retry": Retry(attempts_max=0)}),
        ("retry.backoff_ms", {"retry": Retry(backoff_ms=-1)}),
        ("retry.backoff_ms_max", {"retry": Retry(backoff_ms_max=10**18)}),
        ("breaker.fail_max", {"breaker": Breaker(fail_max=0)}),
        ("breaker.reset_timeout_s", {"breaker": Breaker(reset_timeout_s=float("nan"))}),
        ("pool.connections_max", {"pool": Pool(connections_max=0)}),
        ("pool.in_flight_max", {"pool": Pool(in_flight_max=-1)}),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_by_their_name(
    client: Client, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        client(**options)
    assert caught.value.details["field"] == field


def test_a_closed_client_says_so_and_closes_again() -> None:
    client = MemoryClient()
    client.close()
    client.close()
    with pytest.raises(ClientClosed):
        client.ping()


def test_a_client_without_an_outbox_says_so() -> None:
    with MemoryClient() as client:
        with pytest.raises(Unsupported, match="outbox"):
            client.outbox_status()
        with pytest.raises(Unsupported, match="outbox"):
            client.flush_outbox()
