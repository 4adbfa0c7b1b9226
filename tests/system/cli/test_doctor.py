"""doctor: what it finds in health and in trouble, with and without a running orchestrator."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import apsw
import pytest

from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine, Result, wait_for

ALL_CHECKS = {
    *("sqlite", "config", "data", "disk", "lock", "database", "schema", "journal"),
    *("vectors", "words", "links", "orchestrator", "model", "keys", "redis"),
}


def states(answer: Result) -> dict[str, str]:
    return {check["name"]: check["state"] for check in answer.json()["checks"]}


def change(data: Path, sql: str) -> None:
    connection = apsw.Connection(str(data / "recollect.db"))
    connection.set_busy_timeout(10_000)
    connection.execute(sql)
    connection.close()


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with five memories, one of them deleted, that nobody serves."""
    with OrchestratorProcess(tmp_path_factory.mktemp("left") / "data") as process:
        with process.client() as client:
            for number in range(5):
                memory_id = client.add_memory(f"memory {number}")["memory_id"]
            client.delete_memory(memory_id)
        process.stop()
        return process.data


@pytest.fixture
def stopped(left: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(left, tmp_path / "data"))


@pytest.fixture
def doctor(tmp_path: Path) -> CommandLine:
    """The command line where no endpoint is named."""
    return CommandLine(tmp_path)


def test_all_is_well_while_it_runs(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "Healthy.")
    answer = recollect("doctor", "--data", orchestrator.data, "--json")
    assert answer.code == 0, answer
    assert answer.json()["healthy"] is True
    assert states(answer) == dict.fromkeys(ALL_CHECKS, "ok")
    shown = recollect("doctor", "--data", orchestrator.data)
    assert shown.code == 0
    assert "All is well." in shown.err
    assert orchestrator.endpoint in shown.out


def test_it_finds_the_orchestrator_of_the_folder_by_itself(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    answer = CommandLine(tmp_path)("doctor", "--data", orchestrator.data, "--json")
    assert states(answer)["orchestrator"] == "ok"


def test_while_nothing_runs_that_is_all_there_is_to_say(doctor: CommandLine, stopped: Path) -> None:
    answer = doctor("doctor", "--data", stopped, "--json")
    assert answer.code == 0
    assert states(answer) == {**dict.fromkeys(ALL_CHECKS, "ok"), "orchestrator": "warn"}


def test_after_a_kill_it_reads_what_is_in_the_write_ahead_log(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "Only in the log.")
    orchestrator.kill()
    answer = recollect("doctor", "--data", orchestrator.data, "--json")
    assert answer.code == 0
    [vectors] = [c for c in answer.json()["checks"] if c["name"] == "vectors"]
    assert vectors["message"].startswith("1 living memory")


def test_it_changes_nothing(doctor: CommandLine, stopped: Path) -> None:
    before = (stopped / "recollect.db").read_bytes()
    doctor("doctor", "--data", stopped)
    assert (stopped / "recollect.db").read_bytes() == before
    assert doctor("doctor", "--data", "nowhere").code == 0
    assert not (doctor.folder / "nowhere").exists()


@pytest.mark.parametrize(
    ("sql", "name", "state"),
    [
        ("UPDATE journal SET operation = 'nothing' WHERE seq = 2", "journal", "fail"),
        ("DELETE FROM journal WHERE seq = 3", "journal", "fail"),
        ("UPDATE ledger SET head = zeroblob(32)", "journal", "fail"),
        ("DELETE FROM vectors WHERE num = 1", "vectors", "fail"),
        ("UPDATE vectors SET vector = zeroblob(8) WHERE num = 1", "vectors", "fail"),
        ("UPDATE vectors SET model = 'another' WHERE num = 1", "vectors", "fail"),
        (
            "INSERT INTO vectors (num, model, vector) SELECT 99, model, vector FROM vectors "
            "LIMIT 1",
            "vectors",
            "warn",
        ),
        ("DELETE FROM memories_fts WHERE rowid = 1", "words", "fail"),
        ("INSERT INTO memories_fts (rowid, content) VALUES (99, 'ghost')", "words", "fail"),
        ("INSERT INTO schema_migrations VALUES (10000, 'future')", "schema", "fail"),
        ("DROP TABLE schema_migrations", "schema", "fail"),
    ],
)
def test_it_finds_what_is_wrong_in_the_database(
    doctor: CommandLine, stopped: Path, sql: str, name: str, state: str
) -> None:
    change(stopped, sql)
    answer = doctor("doctor", "--data", stopped, "--json")
    troubled = {n: s for n, s in states(answer).items() if s != "ok" and n != "orchestrator"}
    assert troubled == {name: state}
    assert answer.code == (1 if state == "fail" else 0)
    [found] = [check for check in answer.json()["checks"] if check["name"] == name]
    assert found["advice"]
    shown = doctor("doctor", "--data", stopped).out
    assert found["message"] in shown and found["advice"] in shown


def test_a_missing_vector_is_found_while_it_runs_and_healed_by_a_restart(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "Without a vector.")
    change(orchestrator.data, "DELETE FROM vectors")
    answer = recollect("doctor", "--data", orchestrator.data, "--json")
    assert (answer.code, states(answer)["vectors"]) == (1, "fail")
    orchestrator.stop()
    orchestrator.start()
    assert recollect("doctor", "--data", orchestrator.data).code == 0


@pytest.mark.parametrize("kind", ["nonsense", "flipped", "short"])
def test_a_damaged_file_is_a_finding_and_no_traceback(
    doctor: CommandLine, stopped: Path, kind: str
) -> None:
    path = stopped / "recollect.db"
    content = bytearray(path.read_bytes())
    match kind:
        case "nonsense":
            content[:] = b"nonsense" * 2000
        case "flipped":
            for place in range(5000, len(content), 997):
                content[place] ^= 0xFF
        case "short":
            del content[len(content) // 2 :]
    path.write_bytes(content)
    answer = doctor("doctor", "--data", stopped, "--json")
    assert answer.code == 1
    assert "fail" in states(answer).values()
    assert "Traceback" not in answer.err


def test_it_tells_every_problem_of_the_configuration(alone: CommandLine) -> None:
    (alone.folder / "memory_config.yaml").write_text("storage:\n  readers: 0\nnope: 1\n")
    answer = alone("doctor", "--json")
    assert answer.code == 1
    messages = [c["message"] for c in answer.json()["checks"] if c["name"] == "config"]
    assert len(messages) == 2
    assert any("storage.readers" in message for message in messages)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://host:abc/0", {"config": "fail"}),
        ("redis://127.0.0.1:1/?socket_timeout=soon", {"redis": "warn"}),
    ],
)
def test_an_address_of_redis_that_is_none_is_a_finding(
    alone: CommandLine, url: str, found: dict[str, str]
) -> None:
    answer = alone("doctor", "--json", RECOLLECT_REDIS_URL=url)
    assert found.items() <= states(answer).items()
    assert "Traceback" not in answer.err


def test_a_model_that_is_not_installed_deserves_a_look(alone: CommandLine) -> None:
    local = {"RECOLLECT_EMBEDDING_PROVIDER": "local", "RECOLLECT_MODELS": str(alone.folder)}
    [model] = [
        check
        for check in alone("doctor", "--json", **local).json()["checks"]
        if check["name"] == "model"
    ]
    assert model["state"] == "warn"
    assert model["advice"].startswith("recollect models install ")
    own = alone.folder / "own"
    own.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (own / name).touch()
    named = {**local, "RECOLLECT_EMBEDDING_MODEL": str(own)}
    assert f"is installed in {own}" in alone("doctor", **named).out


def test_an_orchestrator_that_hangs_is_a_failure(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    orchestrator.signal(signal.SIGSTOP)
    answer = recollect("doctor", "--data", orchestrator.data, "--json")
    assert (answer.code, states(answer)["orchestrator"]) == (1, "fail")
    orchestrator.signal(signal.SIGCONT)
    wait_for(lambda: recollect("ping").code == 0)


def test_a_named_endpoint_that_nobody_answers_is_a_failure(
    alone: CommandLine,
) -> None:
    answer = alone("doctor", "--endpoint", "tcp://127.0.0.1:1", "--json")
    assert (answer.code, states(answer)["orchestrator"]) == (1, "fail")
