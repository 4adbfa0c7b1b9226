"""The embedded redis-server: private, started again when it dies, and gone with its orchestrator
however that ends."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from redis import Redis

from tests.faults.polling import wait_for
from tests.harness.processes import OrchestratorProcess
from tests.harness.redis import server_path

WITHIN_S = 30.0
MEGABYTES = 16
EMBEDDED = {
    "RECOLLECT_REDIS_URL": "embedded",
    "RECOLLECT_REDIS_EMBEDDED_MB": str(MEGABYTES),
}


@pytest.fixture
def process(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    server_path()
    with OrchestratorProcess(tmp_path / "data", env=EMBEDDED) as process:
        yield process


def folder_of(process: OrchestratorProcess) -> Path:
    return process.data / "redis"


def client_of(process: OrchestratorProcess) -> Redis:
    return Redis(unix_socket_path=str(folder_of(process) / "redis.sock"))


def server_of(process: OrchestratorProcess) -> psutil.Process:
    """The server, once there is one that answers."""

    def answers() -> bool:
        try:
            with client_of(process) as client:
                return bool(client.ping())
        except OSError:
            return False
        except Exception:  # redis-py's own errors are no OSErrors
            return False

    wait_for(answers, within_s=WITHIN_S, what="the embedded server")
    return psutil.Process(int((folder_of(process) / "redis.pid").read_text()))


def gone(server: psutil.Process) -> bool:
    try:
        return not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it went between the two questions
        return True


def wait_until_nothing_is_left(process: OrchestratorProcess, server: psutil.Process) -> None:
    wait_for(lambda: gone(server), within_s=WITHIN_S, what="the end of the server")
    wait_for(lambda: not folder_of(process).exists(), within_s=WITHIN_S, what="no files of it")


def test_it_is_private_bounded_and_keeps_nothing_on_disk(process: OrchestratorProcess) -> None:
    server = server_of(process)
    folder = folder_of(process)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "redis.sock").stat().st_mode) == 0o700
    assert not server.net_connections("inet")
    with client_of(process) as client, process.client() as memory:
        settings = client.config_get("*")
        assert settings["port"] == "0"
        assert (settings["save"], settings["appendonly"]) == ("", "no")
        assert settings["maxmemory"] == str(MEGABYTES * 1024 * 1024)
        assert settings["maxmemory-policy"] == "volatile-lru"
        memory.push_event("build", "green")
        wait_for(lambda: bool(client.keys("*:events")), within_s=WITHIN_S, what="the event")
        snapshot = memory.system_snapshot()
        assert snapshot["kept_in"] == "redis" and "degraded" not in snapshot
        assert memory.stats()["redis"]["state"] == "ok"
        # More of what may make room than there is room for.
        kept = {key for key in client.keys("*") if client.ttl(key) == -1}
        assert kept
        for number in range(2 * MEGABYTES):
            client.set(f"cached:{number}", b"x" * 1024 * 1024, px=3_600_000)
        assert kept <= set(client.keys("*")), "what is not cached made room"
        assert len(client.keys("cached:*")) < 2 * MEGABYTES
    assert server.exe().endswith("redis-server")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_it_is_left_however_the_orchestrator_ends(
    process: OrchestratorProcess, number: signal.Signals
) -> None:
    server = server_of(process)
    process.signal(number)
    process.wait_ended()
    wait_until_nothing_is_left(process, server)


def test_it_is_started_again_when_it_dies_and_is_given_what_is_known(
    process: OrchestratorProcess,
) -> None:
    with process.client() as memory:
        memory.update_metric("queue_length", 118)
        for _ in range(2):
            server = server_of(process)
            server.kill()
            wait_for(lambda server=server: gone(server), within_s=WITHIN_S, what="its end")  # type: ignore[misc]
        server_of(process)
        assert [m["value"] for m in memory.get_metrics()["metrics"]] == [118]
        with client_of(process) as client:
            wait_for(lambda: bool(client.keys("*:metrics")), within_s=WITHIN_S, what="the metric")
        wait_for(
            lambda: memory.stats()["redis"]["state"] == "ok", within_s=WITHIN_S, what="its return"
        )

        def told() -> list[str]:
            errors = memory.recent_errors(code="redis_unavailable")["errors"]
            return [error["message"] for error in errors]

        # It is told beside the work, and at the latest a moment after it is back.
        wait_for(lambda: bool(told()), within_s=WITHIN_S, what="what was told of it")
        [message] = told()
        assert "started again" in message


def test_what_was_left_behind_is_cleared_at_the_next_start(process: OrchestratorProcess) -> None:
    left = server_of(process)
    guards = psutil.Process(process.pid).children(recursive=True)
    guards.remove(left)
    for guard in guards:
        guard.kill()
    process.kill()
    assert not gone(left), "nothing was left to be cleared"
    process.start()
    server = server_of(process)
    assert gone(left) and server.pid != left.pid
    assert process.stop() == 0
    wait_until_nothing_is_left(process, server)


def test_another_process_that_has_the_number_of_an_old_server_is_let_be(
    process: OrchestratorProcess,
) -> None:
    assert process.stop() == 0
    folder_of(process).mkdir(mode=0o700)
    (folder_of(process) / "redis.pid").write_text(f"{os.getpid()}\n")
    process.start()
    assert server_of(process).pid != os.getpid()


def test_a_folder_too_deep_for_a_socket_has_it_elsewhere(tmp_path: Path) -> None:
    server_path()
    deep = tmp_path.joinpath(*["deep" * 8] * 4)
    deep.mkdir(parents=True)
    with OrchestratorProcess(deep / "data", env=EMBEDDED) as process:
        [guard] = psutil.Process(process.pid).children()
        with process.client() as memory:
            wait_for(
                lambda: memory.stats()["redis"]["state"] == "ok", within_s=WITHIN_S, what="Redis"
            )
            assert memory.system_snapshot()["kept_in"] == "redis"
        socket = Path(guard.cmdline()[5])
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        process.kill()
        wait_for(lambda: not socket.parent.exists(), within_s=WITHIN_S, what="no files of it")
