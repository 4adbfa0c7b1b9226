"""How the gateway ends while clients of MCP have sessions."""

from __future__ import annotations

import time
from pathlib import Path

from tests.harness.gateways import GatewayProcess
from tests.harness.processes import OrchestratorProcess
from tests.system.gateway.mcp.callers import INITIALIZE

ACCEPT = {"Accept": "application/json, text/event-stream"}
# Streams that have no end of their own would be waited for longer.
ENDED_WITHIN_S = 6.0


def test_an_open_session_does_not_hold_up_the_end(tmp_path: Path) -> None:
    env = {"RECOLLECT_GATEWAY_GRPC": "false"}
    with (
        OrchestratorProcess(tmp_path / "data") as process,
        GatewayProcess(process.data, env=env) as gateway,
        gateway.client() as http,
    ):
        opened = http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
        session = {**ACCEPT, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        with http.stream("GET", "/mcp", headers=session) as stream:
            assert stream.status_code == 405
            assert stream.headers["allow"] == "POST, DELETE"
            began_s = time.monotonic()
            assert gateway.stop() == 0
            assert time.monotonic() - began_s < ENDED_WITHIN_S
        assert "Traceback" not in gateway.log()
