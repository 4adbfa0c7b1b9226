"""backup and restore: round trips, and what is refused."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import apsw
import pytest

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.properties import GET, STORE_ID
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine


@pytest.fixture
def backup(recollect: CommandLine) -> Path:
    """A backup with one memory in it, made while the orchestrator runs."""
    recollect("add", "Kept safe.")
    folder = recollect.folder / "backup"
    assert recollect("backup", folder).code == 0
    return folder


def contents(data: Path) -> list[str]:
    with OrchestratorProcess(data) as process, process.client() as client:
        found = [memory["content"] for memory in client.list_memories()["memories"]]
        assert client.semantic_search("kept safe")["count"] == len(found)
        process.signal(signal.SIGTERM)
        process.wait_ended()
        return found


def name_of(data: Path) -> str:
    """What a store goes by where it shares something with others."""
    connection = apsw.Connection(str(data / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        [(name,)] = connection.execute(GET, (STORE_ID,)).fetchall()
        return str(name)
    finally:
        connection.close()


def test_a_backup_made_while_it_runs_comes_back_whole(recollect: CommandLine, backup: Path) -> None:
    recollect("add", "Came later.")
    restored = recollect.folder / "restored"
    answer = recollect("restore", backup, "--data", restored)
    assert answer.code == 0, answer
    assert "recollect up --data" in answer.out
    assert contents(restored) == ["Kept safe."]
    # Both may be served from now on, so they do not go by one name.
    assert name_of(restored) != name_of(backup)


def test_the_json_of_both_commands_says_what_was_copied(
    recollect: CommandLine, backup: Path
) -> None:
    other = recollect("backup", "other", "--json").json()
    assert other["path"] == str(recollect.folder / "other")
    manifest = json.loads((recollect.folder / "other" / "manifest.json").read_text())
    assert (other["sha256"], other["seq"]) == (manifest["sha256"], manifest["seq"])
    restored = recollect("restore", "other", "--data", "restored", "--json").json()
    assert restored["status"] == "success"
    assert restored["sha256"] == manifest["sha256"]
    assert restored["path"] == str(recollect.folder / "restored")


def test_a_folder_that_nobody_serves_can_be_backed_up(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "At rest.")
    orchestrator.stop()
    alone = recollect("backup", "copy")
    assert alone.code == 1
    assert "--data" in alone.err
    assert recollect("backup", "copy", "--data", orchestrator.data, "--json").code == 0
    assert recollect("restore", "copy", "--data", "restored").code == 0
    assert contents(recollect.folder / "restored") == ["At rest."]


def test_a_killed_orchestrator_leaves_a_folder_that_can_be_backed_up(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "In the write-ahead log.")
    orchestrator.kill()
    assert recollect("backup", "copy", "--data", orchestrator.data).code == 0
    assert recollect("restore", "copy", "--data", "restored").code == 0
    assert contents(recollect.folder / "restored") == ["In the write-ahead log."]


def test_a_folder_that_is_served_is_backed_up_through_its_orchestrator(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "Served.")
    elsewhere = CommandLine(recollect.folder, "tcp://127.0.0.1:1")
    answer = elsewhere("backup", "copy", "--data", orchestrator.data, "--json")
    assert answer.json()["seq"] == 1


def test_a_backup_does_not_replace_one_that_is_there(
    recollect: CommandLine, orchestrator: OrchestratorProcess, backup: Path
) -> None:
    before = (backup / "recollect.db").read_bytes()
    assert recollect("backup", backup).code == 1
    orchestrator.stop()
    answer = recollect("backup", backup, "--data", orchestrator.data)
    assert answer.code == 1
    assert "exists already" in answer.err
    assert (backup / "recollect.db").read_bytes() == before


def test_backup_refuses_two_sources_and_a_folder_without_a_database(alone: CommandLine) -> None:
    assert alone("backup", "b", "--data", "d", "--endpoint", "tcp://127.0.0.1:1").code == 2
    answer = alone("backup", "b", "--data", "nowhere", "--json")
    assert (answer.code, answer.json()["error"]["code"]) == (1, "not_found")
    assert not (alone.folder / "nowhere").exists()


def test_restore_does_not_overwrite_a_database(recollect: CommandLine, backup: Path) -> None:
    for name in ("recollect.db", "recollect.db-wal"):
        data = recollect.folder / f"has-{name}"
        data.mkdir()
        (data / name).write_bytes(b"precious")
        answer = recollect("restore", backup, "--data", data, "--json")
        assert (answer.code, answer.json()["error"]["code"]) == (1, "already_exists")
        assert (data / name).read_bytes() == b"precious"


def test_restore_refuses_a_folder_that_is_served(
    recollect: CommandLine, orchestrator: OrchestratorProcess, backup: Path
) -> None:
    answer = recollect("restore", backup, "--data", orchestrator.data)
    assert answer.code == 1
    assert "(folder_in_use)" in answer.err
    assert orchestrator.running()


def test_an_unfinished_backup_is_refused(recollect: CommandLine, backup: Path) -> None:
    (backup / "manifest.json").unlink()
    answer = recollect("restore", backup, "--data", "restored", "--json")
    assert (answer.code, answer.json()["error"]["code"]) == (1, "backup_unfinished")
    assert recollect("restore", "nowhere", "--data", "restored").code == 1


@pytest.mark.parametrize("damage", ["flipped", "shortened", "missing", "nonsense_manifest"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    recollect: CommandLine, backup: Path, damage: str
) -> None:
    database, manifest = backup / "recollect.db", backup / "manifest.json"
    content = bytearray(database.read_bytes())
    match damage:
        case "flipped":
            content[len(content) // 2] ^= 1
            database.write_bytes(content)
        case "shortened":
            database.write_bytes(content[:-4096])
        case "missing":
            database.unlink()
        case "nonsense_manifest":
            manifest.write_text("{}")
    answer = recollect("restore", backup, "--data", "restored")
    assert answer.code == 1
    assert answer.err.startswith("Error: ")
    restored = recollect.folder / "restored"
    assert not restored.exists() or not list(restored.glob("recollect.db*"))


def test_a_backup_of_a_newer_schema_is_refused(recollect: CommandLine, backup: Path) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(json.dumps({**manifest, "schema": 10_000}))
    answer = recollect("restore", backup, "--data", "restored", "--json")
    assert (answer.code, answer.json()["error"]["code"]) == (1, "schema")
