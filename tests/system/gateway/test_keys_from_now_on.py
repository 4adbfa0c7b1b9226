"""Keys that are asked for from now on: who was let in without one gets nothing by ours."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness.gateways import GatewayProcess
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess
from tests.system.cli.commands import wait_for

BODY = b'{"content": "In whose name?", "namespace": "user:alice"}'
HEAD = (
    b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(BODY)
)
SECRET = "Only for who has a key."


def test_who_was_let_in_without_a_key_does_not_go_on_with_ours(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with (
        process,
        GatewayProcess(process.data) as gateway,
        gateway.client() as http,
        http.stream("GET", "/v1/changes", headers={"Accept": "text/event-stream"}) as stream,
        begun(gateway) as line,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        assert process.stop() == 0
        process.env[ASK_FOR_KEYS] = "true"
        process.start()
        wait_for(lambda: http.get("/v1/ping").status_code == 401)
        wait_for(lambda: http.get("/health/ready").status_code == 200)
        with process.client() as admin:
            before = admin.count()["count"]
            line.sendall(BODY)
            assert line.recv(1024).startswith(b"HTTP/1.1 401 ")
            assert admin.count()["count"] == before
            admin.add_memory(SECRET, namespace="user:alice")
        told = list(lines)
        assert "event: error" in told and SECRET not in str(told)
        assert '"code":"unauthenticated"' in str(told)


def test_a_key_file_that_is_exchanged_just_now_is_looked_at_again(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with process, GatewayProcess(process.data) as gateway, gateway.client() as http:
        key, word = process.local_key.read_bytes(), process.data / "orchestrator.json"
        process.local_key.write_text("half of a ke")
        announced = json.loads(word.read_bytes())
        word.write_text(json.dumps({**announced, "keys": True}))
        wait_for(lambda: '"action": "follow"' in gateway.log(), gateway.log)
        process.local_key.write_bytes(key)
        assert process.stop() == 0
        process.env[ASK_FOR_KEYS] = "true"
        process.start()
        wait_for(lambda: http.get("/health/ready").status_code == 200, gateway.log)
        assert http.get("/v1/ping").status_code == 401


def begun(gateway: GatewayProcess) -> socket.socket:
    """A connection with a request whose head was read and whose body is to come."""
    address = urlsplit(gateway.url)
    line = socket.create_connection((address.hostname, address.port), 20)
    line.sendall(HEAD)
    assert line.recv(1024).startswith(b"HTTP/1.1 100 ")
    return line
