"""Calls of tools over HTTP that do without the SDK's layers: nobody can tell by the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.gateways import GatewayProcess
from tests.harness.processes import OrchestratorProcess

MCP_ALONE = {"RECOLLECT_GATEWAY_REST": "false", "RECOLLECT_GATEWAY_GRPC": "false"}
VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol"

Json = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with (
        OrchestratorProcess(tmp_path_factory.mktemp("plain") / "data") as orchestrator,
        GatewayProcess(orchestrator.data, env=MCP_ALONE) as process,
    ):
        yield process


def meta(client: str = "editor", **more: Any) -> Json:
    return {
        f"{PREFIX}/protocolVersion": VERSION,
        f"{PREFIX}/clientInfo": {"name": client, "version": "1"},
        f"{PREFIX}/clientCapabilities": {},
        **more,
    }


def call(tool: str, arguments: Json, given_meta: Json | None = None, **more: Any) -> Json:
    params = {"name": tool, "arguments": arguments, "_meta": given_meta or meta()}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params, **more}


def post(gateway: GatewayProcess, body: Any, **headers: str | None) -> httpx.Response:
    sent = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": body["params"]["name"] if isinstance(body, dict) else "recall",
    }
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in sent.items() if value is not None}
    url = str(gateway.said["mcp_url"])
    return httpx.post(url, json=body, headers=kept, trust_env=False)


def result_of(answered: httpx.Response) -> Json:
    assert answered.status_code == 200, answered.text
    result: Json = answered.json()["result"]
    return result


def remember(gateway: GatewayProcess, content: str, client: str = "editor", **more: Any) -> str:
    arguments = {"content": content, **more}
    result = result_of(post(gateway, call("add_memory", arguments, meta(client))))
    return str(result["structuredContent"]["memory_id"])


def test_the_answer_is_the_same_as_by_the_sdk(gateway: GatewayProcess) -> None:
    metadata = {"nothing": None, "deep": {"none": None, "list": [None, 1]}, "ß": "🐙"}
    memory_id = remember(gateway, "Das Schiff 🐙 sails\n\tat noon.", metadata=metadata)
    asked: tuple[tuple[str, Json], ...] = (
        ("get_memory", {"memory_id": memory_id}),
        ("get_memory", {"memory_id": "nowhere"}),
        ("get_memory", {}),
        ("get_memory", {"memory_id": memory_id, "colour": "red"}),
        ("search_memories", {"query": "ship", "limit": "3"}),
        ("update_memory", {"memory_id": "nowhere", "update_payload": {"content": "x"}}),
    )
    for number, (tool, arguments) in enumerate(asked):
        # A progress token makes a form that was never seen, and so goes to the SDK.
        by_sdk = post(gateway, call(tool, arguments, meta(progressToken=f"{number}")))
        result_of(post(gateway, call(tool, arguments)))
        plain = post(gateway, call(tool, arguments))
        assert plain.json() == by_sdk.json()
        for header in ("content-type", "cache-control", "mcp-session-id", "vary"):
            assert plain.headers.get(header) == by_sdk.headers.get(header)


@pytest.mark.parametrize("number", [0, -3, 2**40, "seven", ""])
def test_an_answer_has_the_id_of_its_call(gateway: GatewayProcess, number: int | str) -> None:
    for _ in range(2):
        answered = post(gateway, call("recall", {"query": "ship"}, id=number))
        assert answered.json()["id"] == number


def test_who_writes_is_named_by_its_client_or_by_its_header(gateway: GatewayProcess) -> None:
    def author(memory_id: str) -> str:
        found = result_of(post(gateway, call("get_memory", {"memory_id": memory_id})))
        return str(found["structuredContent"]["memory"]["created_by"])

    written = [remember(gateway, f"By {name} {n}.", name) for n in (1, 2) for name in ("ed", "vi")]
    assert [author(memory_id) for memory_id in written] == ["ed", "vi", "ed", "vi"]
    body = call("add_memory", {"content": "By the planner."}, meta("ed"))
    named = result_of(post(gateway, body, x_recollect_agent="planner"))
    assert author(named["structuredContent"]["memory_id"]) == "planner"


def test_what_is_refused_at_first_is_refused_after_a_thousand_good_ones(
    gateway: GatewayProcess,
) -> None:
    good = call("recall", {"query": "ship"})
    for _ in range(3):
        result_of(post(gateway, good))
    other_version = meta() | {f"{PREFIX}/protocolVersion": "2031-01-01"}
    for body, headers in (
        (good, {"mcp_name": "get_memory"}),
        (good, {"mcp_name": None}),
        (good, {"mcp_method": "tools/list"}),
        (good, {"mcp_method": None}),
        (good, {"accept": "text/html"}),
        (good, {"content_type": "text/plain"}),
        (good, {"mcp_protocol_version": "2031-01-01"}),
        (call("recall", {"query": "ship"}, other_version), {}),
        (call("recall", {"query": "ship"}, {f"{PREFIX}/protocolVersion": VERSION}), {}),
        (call("recall", {"query": "ship"}, jsonrpc="1.0"), {}),
        (call("recall", {"query": "ship"}, id=None), {}),
        (call("recall", {"query": "ship"}, id=1.5), {}),
        (call("recall", "ship"), {}),  # type: ignore[arg-type]
        (call("drop_everything", {}), {}),
        ([good, good], {}),
    ):
        answered = post(gateway, body, **headers)
        assert answered.status_code >= 400 or "error" in answered.json(), (body, headers)
    for origin in ("https://elsewhere.example", "null"):
        assert post(gateway, good, origin=origin).status_code == 403
    result_of(post(gateway, good))
