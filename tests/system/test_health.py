"""A real health manager beside a real orchestrator: it says what is so."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.http_lines import connect, read_answer
from tests.harness.health import WITHOUT_DASHBOARD, HealthProcess
from tests.harness.ports import free_port
from tests.harness.processes import ASK_FOR_KEYS, OrchestratorProcess
from tests.system.cli.commands import RECOLLECT, CommandLine


class Hook:
    """Somebody's webhook: it refuses, then hangs, then takes what it is told."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.asked = 0
        self.hanging = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.asked += 1
                if hook.asked == 2:
                    hook.hanging.wait(30)
                if hook.asked > 2:
                    hook.taken.append(msgspec.json.decode(body))
                self.send_response(500 if hook.asked == 1 else 204)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hanging.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture(scope="module")
def watched(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[OrchestratorProcess, HealthProcess]]:
    """An orchestrator and its health manager, for what changes nothing about them."""
    with (
        OrchestratorProcess(
            tmp_path_factory.mktemp("watched") / "data",
            env={"RECOLLECT_HEALTH_COUNTS_INTERVAL_S": "0"},
        ) as orchestrator,
        HealthProcess(orchestrator.data, orchestrator.endpoint, WITHOUT_DASHBOARD) as health,
    ):
        health.until(lambda: health.states().get("canary") == "healthy", "the canary sings")
        yield orchestrator, health


def test_who_asks_as_soon_as_it_says_where_it_is_hears_what_was_seen(
    orchestrator: OrchestratorProcess,
) -> None:
    slow = {**WITHOUT_DASHBOARD, "RECOLLECT_HEALTH_PROBE_TIMEOUT_S": "20"}
    with HealthProcess(orchestrator.data, orchestrator.endpoint, slow) as health:
        assert health.states()["orchestrator"] == "healthy"


Watched = tuple[OrchestratorProcess, HealthProcess]


def test_down_and_back_is_told_truthfully_and_to_everybody(tmp_path: Path, hook: Hook) -> None:
    env = WITHOUT_DASHBOARD | {
        "RECOLLECT_HEALTH_WEBHOOK_URL": hook.url,
        "RECOLLECT_HEALTH_WEBHOOK_TIMEOUT_S": "0.3",
    }
    orchestrator = OrchestratorProcess(tmp_path / "data")
    # Before the orchestrator there is nothing to be healthy.
    with orchestrator, HealthProcess(orchestrator.data, orchestrator.endpoint, env) as health:
        health.until_state("healthy")
        orchestrator.signal(signal.SIGSTOP)
        health.until_state("down")
        ready = health.get("/health/ready")
        assert ready.status_code == 503
        assert any("orchestrator" in reason for reason in ready.json()["reasons"])
        assert health.get("/health/live").status_code == 200
        orchestrator.signal(signal.SIGCONT)
        health.until_state("healthy")
        orchestrator.kill()
        health.until_state("down")
        orchestrator.start()
        health.until_state("healthy")
        assert health.get("/health/ready").status_code == 200
        told = of_orchestrator(health.status()["history"][::-1])
        # On a busy machine it may be slow between the two.
        assert without_the_slow(told) == ["down", "healthy", "down", "healthy"]
        hook.hanging.set()
        health.until(lambda: of_orchestrator(hook.taken) == told, "the webhook was told")
        # A restart takes nothing from what is known.
        assert health.stop() == 0
        health.start()
        health.until_state("healthy")
        assert of_orchestrator(health.status()["history"][::-1])[: len(told)] == told
        with orchestrator.client() as client:
            # What was pushed before the kill went with the orchestrator, unless there is Redis.
            health.until(lambda: "down" in without_the_slow(events(client)), "the bus was told")
            errors = client.recent_errors(source="health")["errors"]
            assert "health_down" in {error["code"] for error in errors}


def without_the_slow(told: list[tuple[str, str, str]]) -> list[str]:
    return [after for _, _, after in told if after != "degraded"]


def of_orchestrator(alerts: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (alert["component"], alert["before"], alert["after"])
        for alert in alerts
        if alert["component"] == "orchestrator"
    ]


def events(client: Any) -> list[tuple[str, str, str]]:
    found = client.recent_events(100, "health")["events"]
    return of_orchestrator([event["data"] for event in found])


def test_one_that_is_started_first_waits_for_the_orchestrator(tmp_path: Path) -> None:
    # One that asks for keys: the one of the machine is found when it is there.
    orchestrator = OrchestratorProcess(tmp_path / "data", env={ASK_FOR_KEYS: "true"})
    with HealthProcess(orchestrator.data, orchestrator.endpoint, WITHOUT_DASHBOARD) as health:
        assert health.get("/health/ready").status_code == 503
        with orchestrator:
            health.until_state("healthy")
            # It ends in time also beside one that hangs.
            orchestrator.signal(signal.SIGSTOP)
            assert health.stop() == 0
        assert (orchestrator.data / "health" / "token").stat().st_mode & 0o777 == 0o600
        assert not (orchestrator.data / "health.json").exists()


def test_prometheus_reads_counts_that_move(watched: Watched) -> None:
    orchestrator, health = watched

    def value(name: str, **labels: str) -> float:
        scraped = health.get("/metrics")
        assert scraped.headers["content-type"].startswith("text/plain")
        found = [
            sample.value
            for family in text_string_to_metric_families(scraped.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return found[0] if found else 0.0

    counted = "recollect_request_duration_seconds_count"
    before = value(counted, operation="batch_get_memories")
    with orchestrator.client() as client:
        added = client.add_memory("The tide is low at noon", namespace="app:port")
        for _ in range(3):
            client.batch_get_memories([added["memory_id"]])
    health.until(
        lambda: value(counted, operation="batch_get_memories") == before + 3, "it was counted"
    )
    health.until(
        lambda: value("recollect_namespace_memories", namespace="app:port") == 1, "it is there"
    )
    assert value("recollect_memories", tier="short") == 1
    assert value("recollect_health_state", component="overall") == 0
    assert value("recollect_orchestrator_resident_bytes") > 10_000_000
    assert value("recollect_disk_free_bytes") > 0


def test_strangers_are_turned_away(watched: Watched) -> None:
    _, health = watched
    own = httpx.URL(health.url).netloc.decode()
    for headers, code in (
        ({"Host": "recollect.attacker.example"}, 421),
        ({"Host": "127.0.0.1.attacker.example"}, 421),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://{own}"}, 200),
        ({"Host": "localhost"}, 200),
    ):
        for path in ("/status", "/metrics", "/health/ready"):
            assert health.get(path, headers=headers).status_code == code, headers


def test_one_signs_in_with_the_token_alone(watched: Watched) -> None:
    orchestrator, health = watched
    token = (orchestrator.data / "health" / "token").read_text().strip()
    with httpx.Client(base_url=health.url, trust_env=False) as browser:
        assert "Sign in" in browser.get("/sign-in").text
        assert browser.post("/sign-in", data={"token": "guess"}).status_code == 403
        signed = browser.post("/sign-in", data={"token": token})
        assert signed.status_code == 303
        cookie = signed.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n", 408),
        (b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nt", 408),
        (b"GET /health/live HTTP/1.1\r\nX: " + b"x" * 100_000, 431),
    ],
    ids=["slow head", "slow form", "long head"],
)
def test_who_does_not_come_to_an_end_is_not_waited_for(
    watched: Watched, sent: bytes, status: int
) -> None:
    with connect(watched[1].url) as line:
        line.sendall(sent)
        assert read_answer(line).status == status


def test_the_dashboard_talks_over_a_websocket_of_the_bounded_port(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with (
        HealthProcess(tmp_path / "data", f"tcp://127.0.0.1:{free_port()}") as health,
        connect(health.url) as line,
    ):
        line.sendall(
            b"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n"
            b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        told = b""
        while b'"sid"' not in told:
            part = line.recv(65_536)
            assert part, told
            told += part
        assert told.startswith(b"HTTP/1.1 101 ")


def test_beyond_loopback_nothing_is_shown_without_the_token(watched: Watched) -> None:
    orchestrator, _ = watched
    data = orchestrator.data.parent / "elsewhere"
    health = HealthProcess(
        data, orchestrator.endpoint, WITHOUT_DASHBOARD | {"RECOLLECT_HEALTH_HOST": "0.0.0.0"}
    )
    with health:
        for path in ("/status", "/metrics", "/health/ready"):
            assert health.get(path).status_code == 401
        assert health.get("/health/live").status_code == 200
        token = (data / "health" / "token").read_text().strip()
        bearer = {"Authorization": f"Bearer {token}"}
        assert health.get("/status", headers=bearer).status_code == 200
        assert health.get("/status", headers={**bearer, "Host": "evil.example"}).status_code == 421
        # Two that watch over one store do not take each other's canaries.
        status = health.get("/status", headers=bearer).json()
        assert [change for change in status["history"] if change["component"] == "canary"] == []
        assert health.stop() == 0


def test_the_command_line_shows_it_and_its_exit_code_tells(watched: Watched) -> None:
    orchestrator, health = watched
    recollect = CommandLine(orchestrator.data.parent)
    health.until_state("healthy")
    shown = recollect("status", "--data", orchestrator.data)
    assert shown.code == 0, shown
    assert "Recollect is healthy" in shown.out
    assert "requests/s" in shown.out
    told = recollect("status", "--url", health.url, "--json").json()
    assert told["components"][0]["name"] == "orchestrator"


def test_without_a_health_manager_it_says_what_to_do(watched: Watched) -> None:
    orchestrator, _ = watched
    recollect = CommandLine(orchestrator.data.parent)
    given = ("status", "--url", f"http://127.0.0.1:{free_port()}", "--endpoint")
    shown = recollect(*given, orchestrator.endpoint)
    assert shown.code == 1
    assert "recollect health" in shown.out
    assert "requests/s" in shown.out
    assert recollect(*given, f"tcp://127.0.0.1:{free_port()}").code == 2


def test_it_is_kept_in_view_for_programs_as_well(watched: Watched) -> None:
    orchestrator, _ = watched
    recollect = CommandLine(orchestrator.data.parent)
    with subprocess.Popen(
        [*RECOLLECT, "status", "--watch", "--json", "--data", str(orchestrator.data)],
        stdout=subprocess.PIPE,
        env=recollect.environment(),
    ) as watching:
        assert watching.stdout is not None
        reports = [msgspec.json.decode(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0
    assert reports[0]["at"] < reports[1]["at"]


def test_an_orchestrator_that_is_named_is_the_one_that_is_shown(watched: Watched) -> None:
    orchestrator, _ = watched
    recollect = CommandLine(orchestrator.data.parent)
    data = {"RECOLLECT_DATA": str(orchestrator.data)}
    other = f"tcp://127.0.0.1:{free_port()}"
    shown = recollect("status", "--endpoint", other, "--json", **data)
    assert (shown.code, shown.json()["endpoint"]) == (2, other)
    assert orchestrator.endpoint in shown.json()["components"][1]["reasons"][0]
    assert recollect("status", "--json", RECOLLECT_ENDPOINT=other, **data).code == 2
    same = orchestrator.endpoint.replace("127.0.0.1", "localhost")
    assert recollect("status", "--endpoint", same, "--json", **data).json()["watched"]
    # A folder that is named means its own, wherever one usually is.
    named = recollect("status", "--data", orchestrator.data, "--json", RECOLLECT_ENDPOINT=other)
    assert named.json()["endpoint"] == orchestrator.endpoint


def test_a_health_manager_that_is_named_and_does_not_answer_is_an_error(watched: Watched) -> None:
    orchestrator, health = watched
    recollect = CommandLine(orchestrator.data.parent, orchestrator.endpoint)
    away = f"http://127.0.0.1:{free_port()}"
    shown = recollect("status", "--url", away, "--json")
    assert (shown.code, shown.json()["error"]["code"]) == (1, "unreachable")
    assert away in shown.json()["error"]["message"]
    wrong = recollect("status", "--url", "http://127.0.0.1:port")
    assert (wrong.code, "is no http address" in wrong.err) == (2, True), wrong
    no_report = recollect("status", "--url", f"{health.url}/health/live?", "--json")
    assert (no_report.code, no_report.json()["error"]["code"]) == (1, "unreachable")


def test_the_canary_leaves_nothing_behind(tmp_path: Path) -> None:
    with OrchestratorProcess(tmp_path / "data") as orchestrator, orchestrator.client() as client:
        with HealthProcess(orchestrator.data, orchestrator.endpoint, WITHOUT_DASHBOARD) as health:
            health.until(lambda: health.states().get("canary") == "healthy", "the canary sings")
            rounds = client.metrics()["requests"]["by_operation"]["delete_memory"]["count"]
            health.until(
                lambda: (
                    client.metrics()["requests"]["by_operation"]["delete_memory"]["count"]
                    > rounds + 1
                ),
                "it sings again",
            )
            left = client.list_memories(include_deleted=True)["memories"]
            assert len(left) == 1
            # One that is killed leaves its canary to the next.
            health.close()
            health.start()
            health.until(lambda: health.states().get("canary") == "healthy", "the canary sings")
            assert health.stop() == 0
        assert client.list_memories(include_deleted=True)["count"] == 0
        assert client.metrics()["errors"]["kinds"] == 0
