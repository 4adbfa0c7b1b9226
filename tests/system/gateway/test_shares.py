"""One caller does not take all places of the gateway, nor keep one without a message."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from tests.harness.gateways import GatewayProcess
from tests.harness.grpc_calling import error_of, generated
from tests.harness.grpc_gateways import calling, channel_to, gateway_of
from tests.harness.keys import issue_bearer
from tests.harness.processes import OrchestratorProcess
from tests.system.gateway.mcp.callers import INITIALIZE

WITHIN_S = 30.0
PLACES = 4
SHARE = 2
STREAM = {"Accept": "text/event-stream"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
BOUNDS = {
    "RECOLLECT_GATEWAY_GRPC": "false",
    "RECOLLECT_GATEWAY_STREAMS_MAX": str(PLACES),
    "RECOLLECT_GATEWAY_MCP_SESSIONS_MAX": str(PLACES),
}
METHOD = "/recollect.v1.Recollect/"

messages: Any = generated().messages


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path_factory.mktemp("shares") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def keys(process: OrchestratorProcess) -> dict[str, list[str]]:
    """Two keys of one identity, and one of another."""
    with process.client() as admin:
        greedy = [issue_bearer(admin, "greedy", ("app:x", "read"), label=label) for label in "ab"]
        return {"greedy": greedy, "modest": [issue_bearer(admin, "modest", ("app:x", "read"))]}


def held(bearer: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {bearer}"}


def test_streams_over_rest(process: OrchestratorProcess, keys: dict[str, list[str]]) -> None:
    with (
        GatewayProcess(process.data, env=BOUNDS) as gateway,
        gateway.client() as http,
        contextlib.ExitStack() as streams,
    ):

        def follow(bearer: str) -> httpx.Response:
            asked = http.stream("GET", "/v1/changes", headers={**STREAM, **held(bearer)})
            answer = streams.enter_context(asked)
            if answer.status_code != 200:
                answer.read()
            return answer

        assert [follow(key).status_code for key in keys["greedy"]] == [200] * SHARE
        for key in keys["greedy"]:
            refused = follow(key)
            assert refused.status_code == 503
            error = refused.json()["error"]
            assert (error["code"], error["details"]["limit"]) == ("overloaded", "gateway.share_max")
        assert follow(keys["modest"][0]).status_code == 200


def test_sessions_of_mcp(process: OrchestratorProcess, keys: dict[str, list[str]]) -> None:
    with GatewayProcess(process.data, env=BOUNDS) as gateway, gateway.client() as http:

        def opened(bearer: str) -> httpx.Response:
            return http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **held(bearer)})

        one, other = keys["greedy"]
        sessions = [opened(one), opened(other)]
        assert [answer.status_code for answer in sessions] == [200] * SHARE
        refused = opened(one)
        assert refused.status_code == 503
        assert refused.json()["error"]["details"]["limit"] == "gateway.share_max"
        assert opened(keys["modest"][0]).status_code == 200
        # One that is ended makes room.
        session = {"Mcp-Session-Id": sessions[0].headers["mcp-session-id"]}
        ended = http.delete("/mcp", headers={**ACCEPT, **held(one), **session})
        assert ended.status_code == 200
        assert opened(other).status_code == 200
        # What opens none takes none.
        broken = http.post("/mcp", json={"no": "call"}, headers={**ACCEPT, **held("x" * 40)})
        assert broken.status_code == 401
        for _ in range(2 * PLACES):
            key = keys["modest"][0]
            http.post("/mcp", json={"no": "call"}, headers={**ACCEPT, **held(key)})
        assert opened(keys["modest"][0]).status_code == 200


def test_streams_over_grpc(process: OrchestratorProcess, keys: dict[str, list[str]]) -> None:
    with (
        gateway_of(process, streams_max=str(PLACES)) as gateway,
        channel_to(gateway) as channel,
    ):
        stub: Any = generated().stubs.RecollectStub(channel)
        open_streams = []

        def follow(bearer: str) -> None:
            key = (("authorization", f"Bearer {bearer}"),)
            stream = stub.Subscribe(
                messages.SubscribeRequest(from_seq=0), metadata=key, timeout=WITHIN_S
            )
            open_streams.append(stream)
            next(stream)

        for key in keys["greedy"]:
            follow(key)
        with pytest.raises(grpc.RpcError) as caught:
            follow(keys["greedy"][0])
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error_of(caught.value).details["limit"] == "gateway.share_max"
        follow(keys["modest"][0])
        for stream in open_streams:
            stream.cancel()


class Silent:
    """A call whose headers are sent, and whose message never is."""

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        self._over = threading.Event()
        start: Any = channel.stream_unary(method).future
        self.call = start(self._nothing(), timeout=WITHIN_S)

    def _nothing(self) -> Iterator[bytes]:
        self._over.wait(WITHIN_S)
        yield from ()

    def error(self) -> Any:
        try:
            error = self.call.exception(WITHIN_S)
        finally:
            self._over.set()
        assert isinstance(error, grpc.RpcError)
        return error


def test_a_message_that_does_not_come_is_waited_for_so_long(process: OrchestratorProcess) -> None:
    with gateway_of(process, read_s="0.3") as gateway, channel_to(gateway) as channel:
        for method in ("Ping", "GetMemory", "Subscribe"):
            error = Silent(channel, METHOD + method).error()
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert error_of(error).code == "deadline_exceeded"
            assert error_of(error).details["limit"] == "gateway.read_s"
        health = Silent(channel, "/grpc.health.v1.Health/Check").error()
        assert health.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        with calling(gateway) as client:
            assert client.ping()["ready"] is True


def test_one_address_owes_no_more_messages_than_its_share(process: OrchestratorProcess) -> None:
    with (
        gateway_of(process, requests_max="4", streams_max="4", share_max="0.5") as gateway,
        contextlib.ExitStack() as channels,
    ):
        silent = [
            Silent(channels.enter_context(channel_to(gateway)), METHOD + "Ping") for _ in range(8)
        ]
        refused = [each for each in silent[4:] if each.error()]
        assert len(refused) == 4
        for each in refused:
            assert error_of(each.error()).details["limit"] == "gateway.share_max"
        with calling(gateway) as client:
            assert client.ping()["ready"] is True
        assert not any(each.call.done() for each in silent[:4])
        for each in silent[:4]:
            each.call.cancel()


def test_a_call_without_a_message_is_refused(process: OrchestratorProcess, tmp_path: Path) -> None:
    with gateway_of(process) as gateway, channel_to(gateway) as channel:
        call: Any = channel.stream_unary(METHOD + "Ping").future(iter(()), timeout=WITHIN_S)
        assert error_of(call.exception(WITHIN_S)).code == "malformed_request"
