"""MCP over streamable HTTP: the real gateway, driven by the official client."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from recollect.gateway.mcp.fitting import COUNTER
from tests.harness.gateways import GatewayProcess
from tests.harness.keys import issue_bearer
from tests.harness.processes import OrchestratorProcess
from tests.system.gateway.mcp.callers import INITIALIZE, Mode, over_http, run
from tests.system.gateway.mcp.everything import use_everything

MCP_ALONE = {"RECOLLECT_GATEWAY_REST": "false", "RECOLLECT_GATEWAY_GRPC": "false"}
ROOM_WITHIN_S = 20.0
ACCEPTED = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def gateway(orchestrator: OrchestratorProcess) -> Iterator[GatewayProcess]:
    with GatewayProcess(orchestrator.data, env=MCP_ALONE) as process:
        yield process


def url_of(gateway: GatewayProcess) -> str:
    return str(gateway.said["mcp_url"])


def post(gateway: GatewayProcess, body: Any = INITIALIZE, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(url_of(gateway), json=body, headers=ACCEPTED | sent, trust_env=False)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_everything_works_over_http(gateway: GatewayProcess, mode: Mode) -> None:
    async def work() -> None:
        async with over_http(url_of(gateway), mode=mode) as call:
            await use_everything(call)

    run(work)


def test_a_tool_that_fails_says_what_to_do_and_others_are_not_known(
    gateway: GatewayProcess,
) -> None:
    async def work() -> None:
        async with over_http(url_of(gateway)) as call:
            missing = await call.error("get_memory", memory_id="nowhere")
            assert missing["code"] == "not_found"
            wrong = await call.error("recall", query="")
            assert (wrong["code"], wrong["details"]["field"]) == ("invalid_argument", "query")
            stale = await call("remember", content="Once.")
            conflict = await call.error(
                "update_memory",
                memory_id=stale["memory_id"],
                update_payload={"content": "Twice."},
                expected_version=9,
            )
            assert conflict["code"] == "version_conflict"
            with pytest.raises(MCPError, match=r"only: .*recall"):
                await call.result("drop_everything")
            for uri in ("memory://nowhere", "file:///etc/passwd", "memory://"):
                with pytest.raises(MCPError):
                    await call.client.read_resource(uri)
            for arguments in ({}, {"task": "x", "max_tokens": "many"}, {"job": "x"}):
                with pytest.raises(MCPError, match=r"context_for_task|max_tokens"):
                    await call.client.get_prompt("context_for_task", arguments)
            with pytest.raises(MCPError, match="only context_for_task"):
                await call.client.get_prompt("other", {})

    run(work)


def test_an_answer_keeps_within_its_tokens_and_its_cursor_leads_to_the_rest(
    orchestrator: OrchestratorProcess,
) -> None:
    with orchestrator.client() as client:
        for n in range(12):
            client.add_memory(f"The log of day {n}: " + f"calm sea and wind {n} " * 30)
        whole = client.add_memory("An epic. " + "It goes on and on. " * 3000)["memory_id"]
        session = client.create_session("alice")["session_id"]
        for n in range(40):
            client.append_event(session, {"n": n, "text": "spoke at length " * 10})
    tokens_max = 1500

    async def work(url: str) -> None:
        async with over_http(url) as call:

            async def asked(name: str, **arguments: Any) -> dict[str, Any]:
                result = await call.result(name, **arguments)
                [text] = result.content
                assert isinstance(text, types.TextContent)
                assert COUNTER.count(text.text) <= tokens_max
                answer: dict[str, Any] = result.structured_content
                return answer

            seen: list[str] = []
            cursor: dict[str, Any] = {}
            for _ in range(12):
                page = await asked("search_memories", query="calm sea", limit=12, **cursor)
                seen += [found["id"] for found in page["results"]]
                if "cursor" not in page:
                    break
                assert "this cursor" in page.get("cut", "this cursor")
                cursor = {"cursor": page["cursor"]}
            assert len(seen) == len(set(seen)) == 12
            epic = await asked("get_memory", memory_id=whole)
            assert epic["memory"]["content"].endswith("[…]")
            assert "memory://ID" in epic["cut"]
            [resource] = (await call.client.read_resource(f"memory://{whole}")).contents
            assert isinstance(resource, types.TextResourceContents)
            assert len(resource.text) > 50_000
            last = await asked("get_session", session_id=session, events=40)
            assert last["events"][-1]["event"]["n"] == 39
            context = await asked(
                "assemble_context", task_description="Write the log", max_tokens=100_000
            )
            assert context["tokens"] <= tokens_max

    env = MCP_ALONE | {"RECOLLECT_GATEWAY_MCP_TOKENS_MAX": str(tokens_max)}
    with GatewayProcess(orchestrator.data, env=env) as gateway:
        run(lambda: work(url_of(gateway)))


def test_the_headers_say_who_speaks(
    gateway: GatewayProcess, orchestrator: OrchestratorProcess
) -> None:
    with orchestrator.client() as client:
        session_id = client.create_session("alice")["session_id"]

    async def work() -> str:
        async with over_http(
            url_of(gateway), x_recollect_agent="planner", x_recollect_session=session_id
        ) as call:
            return str((await call("remember", content="Said in a session."))["memory_id"])

    memory_id = run(work)
    with orchestrator.client() as client:
        memory = client.get_memory(memory_id)["memory"]
    assert (memory["created_by"], memory["session_id"]) == ("planner", session_id)


def test_it_goes_on_when_the_orchestrator_is_back(
    gateway: GatewayProcess, orchestrator: OrchestratorProcess
) -> None:
    async def work() -> None:
        async with over_http(url_of(gateway), mode="legacy") as call:
            await call("remember", content="Before.")
            orchestrator.kill()
            away = await call.error("recall", query="before")
            assert (away["code"], away["retryable"]) == ("unreachable", True)
            orchestrator.start()
            assert (await call("recall", query="before"))["count"] == 1

    run(work)


def test_keys_are_asked_for_and_a_session_answers_only_to_its_own(
    orchestrator: OrchestratorProcess,
) -> None:
    with orchestrator.client() as admin:
        alice = issue_bearer(admin, "alice", ("user:alice", "write"))
        bob = issue_bearer(admin, "bob", ("user:bob", "write"))
    env = MCP_ALONE | {"RECOLLECT_GATEWAY_REQUIRE_KEYS": "true"}

    async def work(url: str) -> None:
        for mode in ("auto", "legacy"):
            async with over_http(url, mode=mode, authorization=f"Bearer {alice}") as call:
                await call("remember", content="Hers.", namespace="user:alice")
                refused = await call.error("remember", content="His.", namespace="user:bob")
                assert refused["code"] == "forbidden"
        # Without a session each request stands alone, and each is refused.
        async with over_http(url, mode="auto", authorization="Bearer wrong") as call:
            assert (await call.error("recall", query="hers"))["code"] == "unauthenticated"

    with GatewayProcess(orchestrator.data, env=env) as gateway:
        run(lambda: work(url_of(gateway)))
        for key in (None, "Bearer wrong"):
            refused = post(gateway, **({} if key is None else {"authorization": key}))
            assert refused.status_code == 401
            assert refused.json()["error"]["code"] == "unauthenticated"
            assert refused.headers["www-authenticate"].startswith("Bearer")
        opened = post(gateway, authorization=f"Bearer {alice}")
        assert opened.status_code == 200
        session = opened.headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        hers = post(gateway, ping, authorization=f"Bearer {alice}", mcp_session_id=session)
        his = post(gateway, ping, authorization=f"Bearer {bob}", mcp_session_id=session)
        assert (hers.status_code, his.status_code) == (200, 404)
        orchestrator.kill()
        away = post(gateway, authorization=f"Bearer {bob}")
        assert (away.status_code, away.json()["error"]["code"]) == (503, "unreachable")
        assert alice not in gateway.log()


def test_other_names_pages_and_bodies_are_refused_and_sessions_are_bounded(
    orchestrator: OrchestratorProcess,
) -> None:
    env = MCP_ALONE | {
        "RECOLLECT_GATEWAY_HOSTS_ALLOWED": "memory.example.org",
        "RECOLLECT_GATEWAY_ORIGINS_ALLOWED": "null",
        "RECOLLECT_GATEWAY_BODY_BYTES_MAX": "2048",
        "RECOLLECT_GATEWAY_MCP_SESSIONS_MAX": "2",
        "RECOLLECT_GATEWAY_SHARE_MAX": "1",
    }
    with GatewayProcess(orchestrator.data, env=env) as gateway:
        assert post(gateway, host="evil.example.org").status_code == 421
        assert post(gateway, origin="https://evil.example.org").status_code == 403
        assert post(gateway, [INITIALIZE] * 50).status_code == 413
        assert post(gateway, host="memory.example.org").status_code == 200
        assert post(gateway).status_code == 200
        assert post(gateway).status_code == 503


def test_whatever_name_the_gateway_knows_itself_by_leads_to_mcp_as_well(
    orchestrator: OrchestratorProcess,
) -> None:
    given = "memory.example.org"
    env = MCP_ALONE | {"RECOLLECT_GATEWAY_HOSTS_ALLOWED": given}
    with GatewayProcess(orchestrator.data, env=env) as gateway:
        assert post(gateway, host="LOCALHOST:7333").status_code == 200
        assert post(gateway, host=given, origin=f"https://{given}").status_code == 200
        own = gateway.url.partition("//")[2]
        assert post(gateway, host=own, origin=f"http://{own}").status_code == 200


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"], ids=["session", "plain"])
def test_calls_beyond_those_that_may_be_in_work_are_told_to_come_again(
    orchestrator: OrchestratorProcess, version: str
) -> None:
    env = MCP_ALONE | {
        "RECOLLECT_GATEWAY_REQUESTS_MAX": "1",
        "RECOLLECT_GATEWAY_TIMEOUT_S": "3",
    }
    params: dict[str, Any] = {"name": "recall", "arguments": {"query": "tea"}}
    sent = {"mcp_protocol_version": version}
    with GatewayProcess(orchestrator.data, env=env) as gateway:
        if version == "2025-06-18":
            sent["mcp_session_id"] = post(gateway).headers["mcp-session-id"]
        else:
            sent |= {"mcp_method": "tools/call", "mcp_name": "recall"}
            names = {"clientInfo": {"name": "raw", "version": "1"}, "clientCapabilities": {}}
            told = {"protocolVersion": version, **names}
            params["_meta"] = {f"io.modelcontextprotocol/{key}": told[key] for key in told}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        assert post(gateway, body, **sent).status_code == 200
        orchestrator.signal(signal.SIGSTOP)
        with ThreadPoolExecutor(2) as both:
            asked = [both.submit(post, gateway, body, **sent) for _ in range(2)]
            # One waits for the orchestrator, and so the other is turned away at once.
            first, late = (one.result() for one in as_completed(asked))
        orchestrator.signal(signal.SIGCONT)
        assert (first.status_code, first.json()["error"]["code"]) == (503, "overloaded")
        assert int(first.headers["retry-after"]) >= 1
        assert late.status_code == 200 and late.json()["result"]["isError"]
        assert post(gateway, body, **sent).status_code == 200


def test_a_session_that_nobody_uses_makes_room(orchestrator: OrchestratorProcess) -> None:
    env = MCP_ALONE | {
        "RECOLLECT_GATEWAY_MCP_SESSIONS_MAX": "1",
        "RECOLLECT_GATEWAY_MCP_IDLE_S": "0.1",
    }
    with GatewayProcess(orchestrator.data, env=env) as gateway:
        first = post(gateway)
        assert first.status_code == 200
        deadline_s = time.monotonic() + ROOM_WITHIN_S
        while (second := post(gateway)).status_code != 200:
            assert time.monotonic() < deadline_s, "the session was never closed"
        assert second.headers["mcp-session-id"] != first.headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        closed = post(gateway, ping, mcp_session_id=first.headers["mcp-session-id"])
        assert closed.status_code == 404
