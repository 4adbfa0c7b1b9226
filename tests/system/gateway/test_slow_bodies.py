"""Bodies that are long in coming take nobody's place, over REST and MCP alike."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.faults.http_lines import connect, read_answer
from tests.harness.gateways import GatewayProcess
from tests.harness.processes import OrchestratorProcess
from tests.system.gateway.mcp.callers import INITIALIZE

ACCEPT = {"Accept": "application/json, text/event-stream"}
SLOW = 6
BOUNDS = {
    "RECOLLECT_GATEWAY_GRPC": "false",
    "RECOLLECT_GATEWAY_REQUESTS_MAX": "2",
    "RECOLLECT_GATEWAY_MCP_SESSIONS_MAX": "2",
}


def test_who_is_slow_to_send_keeps_nobody_out(tmp_path: Path) -> None:
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data, env=BOUNDS) as gateway,
        gateway.client() as http,
        contextlib.ExitStack() as lines,
    ):
        for path in [b"/v1/memories"] * SLOW + [b"/mcp"] * SLOW:
            line = lines.enter_context(connect(gateway.url))
            line.sendall(
                b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\n"
                b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n{" % path
            )
            assert read_answer(line).status == 100, "its body is being read"
        assert http.get("/v1/memories").status_code == 200
        assert http.post("/v1/memories", json={"content": "In time."}).status_code == 200
        opened = http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
        assert opened.status_code == 200 and opened.headers["mcp-session-id"]
