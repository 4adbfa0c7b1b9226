"""`recollect up`: what it starts, restarts, stops, and leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect import MemoryClient
from recollect.orchestrator.running.data_folder import DataFolder, holder_of
from tests.harness.ports import free_port
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import ENDS_WITHIN_S, RECOLLECT, CommandLine, Up, wait_for


def test_it_says_where_everything_is_and_what_to_try(up: Up) -> None:
    output = up.output()
    assert up.endpoint in output
    assert str(up.data) in output
    assert str(up.data / "logs" / "orchestrator.log") in output
    assert "recollect add" in output
    assert 'recall "How is the build?"' in output
    assert "model     hashed-" in output
    assert "from recollect import MemoryClient" in output
    assert '"action": "ready"' in (up.data / "logs" / "orchestrator.log").read_text()


def test_the_python_it_shows_works(up: Up) -> None:
    lines = up.output().splitlines()
    first = next(n for n, line in enumerate(lines) if "from recollect import" in line)
    snippet = "\n".join(line[2:] for line in lines[first : first + 4])
    answer = subprocess.run(
        [*up.process.args[:1], "-c", snippet],  # type: ignore[index]
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        env=up.recollect.environment(),
    )
    assert "The build is green since Tuesday." in answer.stdout, answer.stderr


def test_a_killed_orchestrator_is_started_again_with_its_data(up: Up) -> None:
    stored = up.recollect("add", "Survives.", "--json").json()["memory_id"]
    for _ in range(3):
        before = up.running_child()
        before.kill()
        before.wait(ENDS_WITHIN_S)
        up.wait_for(lambda pid=before.pid: (c := up.child()) is not None and c.pid != pid)  # type: ignore[misc]
        with MemoryClient(up.endpoint, timeout=20) as client:
            assert client.get_memory(stored)["memory"]["content"] == "Survives."
    assert "was ended by SIGKILL; starting it again" in up.output()
    assert up.process.poll() is None


def test_without_a_model_or_a_source_of_one_it_starts_and_says_so(tmp_path: Path) -> None:
    nowhere = {
        "RECOLLECT_EMBEDDING_PROVIDER": "local",
        "RECOLLECT_MODELS": str(tmp_path / "none"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "",
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "no_proxy": "127.0.0.1",
    }
    running = Up(tmp_path, env=nowhere)
    try:
        output = running.wait_ready().output()
        assert "could not be installed" in output
        assert "recollect models install" in output
        assert "the light embedder (hashed-" in output
        running.recollect("add", "Found all the same.")
        assert "Found all the same." in running.recollect("recall", "what is found?").out
    finally:
        running.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_cleanly_and_leaves_no_child(up: Up, number: signal.Signals) -> None:
    child = up.running_child()
    up.signal(number)
    assert up.wait_ended() == 0, up.output()
    assert not child.is_running()
    assert '"action": "stop"' in (up.data / "logs" / "orchestrator.log").read_text()


def test_under_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        # What a process ignores, those that it starts ignore as well.
        up = Up(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        up.wait_ready().signal(signal.SIGHUP)
        assert up.recollect("ping").code == 0
        assert "Stopping" not in up.output()
        up.signal(signal.SIGTERM)
        assert up.wait_ended() == 0
    finally:
        up.close()


def test_ctrl_c_while_a_restart_is_pending_stops_too(up: Up) -> None:
    up.running_child().kill()
    up.wait_for(lambda: "starting it again" in up.output())
    up.signal(signal.SIGINT)
    assert up.wait_ended() == 0
    DataFolder(up.data).release()  # Raises if anybody were still there.


def test_a_second_ctrl_c_does_not_wait_for_a_child_that_hangs(up: Up) -> None:
    child = up.running_child()
    child.suspend()
    up.signal(signal.SIGINT)
    up.wait_for(lambda: "Stopping" in up.output())
    up.signal(signal.SIGINT)
    assert up.wait_ended() == 0
    assert not child.is_running()


def test_the_child_stops_cleanly_when_its_supervisor_is_killed(up: Up) -> None:
    child = up.running_child()
    up.signal(signal.SIGKILL)
    up.wait_ended()
    wait_for(lambda: not child.is_running(), up.output)
    log = (up.data / "logs" / "orchestrator.log").read_text()
    assert '"drained": true' in log


def test_a_data_folder_in_use_is_a_clear_error(
    orchestrator: OrchestratorProcess, alone: CommandLine
) -> None:
    bind = f"tcp://127.0.0.1:{free_port()}"
    for command in ("up", "orchestrator"):
        answer = alone(command, "--data", orchestrator.data, "--bind", bind)
        assert answer.code == 1
        assert f"in use by another orchestrator (process {orchestrator.pid})" in answer.err
        assert "Traceback" not in answer.err
    assert orchestrator.running()


def test_a_taken_port_is_a_clear_error(alone: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        for command in ("up", "orchestrator"):
            answer = alone(command, "--data", "data", "--bind", bind)
            assert answer.code == 1
            assert bind in answer.err
            assert "--bind" in answer.err and "(address_in_use)" in answer.err
            assert "Traceback" not in answer.err


def test_an_endpoint_beyond_this_machine_is_refused_while_nobody_has_a_key(
    alone: CommandLine,
) -> None:
    for command in ("up", "orchestrator"):
        answer = alone(command, "--data", "data", "--bind", f"tcp://0.0.0.0:{free_port()}")
        assert answer.code == 2
        assert "recollect keys new NAME" in answer.err + answer.out
        assert "nobody_known" in answer.err + answer.out


def test_what_is_not_a_database_is_a_clear_error(alone: CommandLine) -> None:
    data = alone.folder / "data"
    data.mkdir()
    (data / "recollect.db").write_bytes(b"This is no database. " * 1000)
    for command in ("up", "orchestrator"):
        answer = alone(command, "--data", data, "--bind", f"tcp://127.0.0.1:{free_port()}")
        assert answer.code == 1
        assert "(database_damaged)" in answer.err
        assert "recollect doctor" in answer.err


def test_every_problem_of_the_configuration_is_told_at_once(alone: CommandLine) -> None:
    config = alone.folder / "wrong.yaml"
    config.write_text("storage:\n  readers: none\nnetwork:\n  bnd: tcp://127.0.0.1:1\n")
    for command in ("up", "orchestrator"):
        answer = alone(command, "--config", config)
        assert answer.code == 2
        assert "storage.readers" in answer.err and "network.bnd" in answer.err
        assert "did you mean" in answer.err
        assert alone(command, "--config", "missing.yaml").code == 2


def test_options_win_over_variables_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "memory_config.yaml").write_text("storage:\n  data: from-file\n")
    with OrchestratorProcess(
        tmp_path / "given", env={"RECOLLECT_DATA": "from-variable"}
    ) as process:
        assert (process.data / "recollect.db").exists()
        assert not (tmp_path / "from-variable").exists()
        assert not (tmp_path / "from-file").exists()


def test_a_second_one_on_the_same_folder_is_refused_and_harms_nothing(up: Up) -> None:
    bind = f"tcp://127.0.0.1:{free_port()}"
    for more in ((), ("--detach",)):
        answer = up.recollect("up", "--data", up.data, "--bind", bind, *more)
        assert answer.code == 1
        assert f"process {up.process.pid}" in answer.err
    assert up.recollect("ping").code == 0


def test_detached_it_runs_on_its_own_until_it_is_brought_down(tmp_path: Path) -> None:
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    recollect, data = CommandLine(tmp_path, endpoint), tmp_path / "data"
    quiet = ("--without", "scheduler", "--without", "gateway", "--without", "health")
    started = recollect("up", "--detach", "--data", data, "--bind", endpoint, *quiet)
    try:
        assert started.code == 0, started.err
        assert "is up" in started.out and endpoint in started.out
        assert f"down --data {data}" in started.out
        stored = recollect("add", "Kept.", "--json").json()["memory_id"]
        logged = recollect("logs", "orchestrator", "--data", data)
        assert "Ready." in logged.out and "orchestrator" in logged.out
        assert '"action": "ready"' in recollect("logs", "--json", "--data", data).out
    finally:
        stopped = recollect("down", "--data", data, "--json")
    assert stopped.json()["stopped"] is True
    assert recollect("ping").code == 1
    again = recollect("down", "--data", data)
    assert again.code == 0 and "Nothing runs" in again.err
    with OrchestratorProcess(data) as process, process.client() as client:
        assert client.get_memory(stored)["memory"]["content"] == "Kept."


@contextmanager
def detaching(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """`up --detach` while it waits for a health manager that has no port, the process that it
    started, and the folder."""
    recollect, data = CommandLine(tmp_path, f"tcp://127.0.0.1:{free_port()}"), tmp_path / "data"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        env = {"RECOLLECT_HEALTH_PORT": str(taken.getsockname()[1])}
        quiet = ("--without", "scheduler", "--without", "gateway")
        assert recollect.endpoint is not None
        bind = ("--data", str(data), "--bind", recollect.endpoint)
        waiting = subprocess.Popen(
            [*RECOLLECT, "up", "--detach", *bind, *quiet],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=recollect.environment(**env),
        )
        log = data / "logs" / "orchestrator.log"
        wait_for(lambda: log.exists() and '"action": "ready"' in log.read_text(), lambda: "")
        holder = holder_of(data, "up")
        assert holder is not None
        try:
            yield waiting, int(holder), data
        finally:
            waiting.kill()
            recollect("down", "--data", data)


def test_ctrl_c_while_it_detaches_stops_what_it_started(tmp_path: Path) -> None:
    with detaching(tmp_path) as (waiting, pid, data):
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=ENDS_WITHIN_S)
        assert waiting.returncode == 130
        assert f"Stopping it again (process {pid})" in said
        assert holder_of(data, "up") is None


@pytest.mark.parametrize(
    ("number", "how"),
    [(signal.SIGTERM, "ended with exit code 0"), (signal.SIGKILL, "was ended by SIGKILL")],
)
def test_what_ends_before_it_is_up_is_a_failed_start_however_it_ended(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    with detaching(tmp_path) as (waiting, pid, _):
        os.kill(pid, number)
        _, said = waiting.communicate(timeout=ENDS_WITHIN_S)
        assert (waiting.returncode, how in said) == (1, True), said


def test_detached_a_start_that_fails_says_why(tmp_path: Path) -> None:
    recollect, data = CommandLine(tmp_path), tmp_path / "data"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        answer = recollect("up", "--detach", "--data", data, "--bind", bind)
    assert answer.code == 1
    assert bind in answer.err and "address_in_use" in answer.err
    none = recollect("logs", "--data", tmp_path / "elsewhere")
    assert none.code == 1 and "There is no log yet" in none.err and "recollect up" in none.err
    missing = recollect("logs", "nobody", "--data", data)
    assert missing.code == 1 and "There are: orchestrator, up." in missing.err
    unknown = recollect("up", "--data", data, "--without", "everything")
    assert unknown.code == 2 and "scheduler, gateway, health" in unknown.err
