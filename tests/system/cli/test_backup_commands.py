"""backup and restore: round trips, and what is refused."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.harness.processes import OrchestratorProcess
from tests.harness.storages import CHOSEN, SQLITE
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


def source(data: Path) -> tuple[str | Path, ...]:
    """The options that name a store which nobody serves."""
    if CHOSEN.kind == SQLITE:
        return "--data", data
    return "--storage", CHOSEN.url_of(data)


def into(data: Path) -> tuple[str | Path, ...]:
    """The options that name where a backup is to go: served with this data folder afterwards."""
    if CHOSEN.kind == SQLITE:
        return "--data", data
    return "--storage", CHOSEN.empty_for(data)


def file_of(backup: Path) -> Path:
    """The file of a backup that holds what was stored."""
    [found] = [path for path in backup.iterdir() if path.name != "manifest.json"]
    return found


def test_a_backup_made_while_it_runs_comes_back_whole(recollect: CommandLine, backup: Path) -> None:
    recollect("add", "Came later.")
    restored = recollect.folder / "restored"
    answer = recollect("restore", backup, *into(restored))
    assert answer.code == 0, answer
    assert "recollect up" in answer.out
    assert contents(restored) == ["Kept safe."]


def test_the_json_of_both_commands_says_what_was_copied(
    recollect: CommandLine, backup: Path
) -> None:
    other = recollect("backup", "other", "--json").json()
    assert other["path"] == str(recollect.folder / "other")
    manifest = json.loads((recollect.folder / "other" / "manifest.json").read_text())
    assert (other["sha256"], other["seq"]) == (manifest["sha256"], manifest["seq"])
    folder = recollect.folder / "restored"
    restored = recollect("restore", "other", *into(folder), "--json").json()
    assert restored["status"] == "success"
    assert restored["sha256"] == manifest["sha256"]
    assert restored["path"] == (str(folder) if CHOSEN.kind == SQLITE else None)


def test_a_folder_that_nobody_serves_can_be_backed_up(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "At rest.")
    orchestrator.stop()
    alone = recollect("backup", "copy")
    assert alone.code == 1
    assert "--data" in alone.err
    assert recollect("backup", "copy", *source(orchestrator.data), "--json").code == 0
    restored = recollect.folder / "restored"
    assert recollect("restore", "copy", *into(restored)).code == 0
    assert contents(restored) == ["At rest."]


def test_a_killed_orchestrator_leaves_a_folder_that_can_be_backed_up(
    recollect: CommandLine, orchestrator: OrchestratorProcess
) -> None:
    recollect("add", "In the write-ahead log.")
    orchestrator.kill()
    assert recollect("backup", "copy", *source(orchestrator.data)).code == 0
    restored = recollect.folder / "restored"
    assert recollect("restore", "copy", *into(restored)).code == 0
    assert contents(restored) == ["In the write-ahead log."]


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
    before = file_of(backup).read_bytes()
    assert recollect("backup", backup).code == 1
    orchestrator.stop()
    answer = recollect("backup", backup, *source(orchestrator.data))
    assert answer.code == 1
    assert "exists already" in answer.err
    assert file_of(backup).read_bytes() == before


def test_backup_refuses_two_sources_and_a_folder_without_a_database(alone: CommandLine) -> None:
    for two in (("--endpoint", "tcp://127.0.0.1:1"), ("--storage", "postgresql:///d")):
        assert alone("backup", "b", "--data", "d", *two).code == 2
    assert alone("restore", "b").code == 2
    assert alone("backup", "b", "--storage", "sqlite").code == 2
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


def test_restore_refuses_a_store_that_is_served(
    recollect: CommandLine, orchestrator: OrchestratorProcess, backup: Path
) -> None:
    recollect("add", "Came later.")
    answer = recollect("restore", backup, *source(orchestrator.data))
    assert answer.code == 1
    told = "(folder_in_use)" if CHOSEN.kind == SQLITE else "(already_exists)"
    assert told in answer.err
    with orchestrator.client() as client:
        assert client.count()["count"] == 2


def test_a_backup_goes_where_it_comes_from(recollect: CommandLine, backup: Path) -> None:
    elsewhere = (
        ("--storage", "postgresql:///d") if CHOSEN.kind == SQLITE else ("--data", "restored")
    )
    answer = recollect("restore", backup, *elsewhere)
    assert answer.code == 2
    assert "--data DIR" in answer.err or "--storage postgresql://" in answer.err
    assert not (recollect.folder / "restored").exists()


def test_an_unfinished_backup_is_refused(recollect: CommandLine, backup: Path) -> None:
    (backup / "manifest.json").unlink()
    target = into(recollect.folder / "restored")
    answer = recollect("restore", backup, *target, "--json")
    assert (answer.code, answer.json()["error"]["code"]) == (1, "backup_unfinished")
    assert recollect("restore", "nowhere", *target).code == 1


@pytest.mark.parametrize("damage", ["flipped", "shortened", "missing", "nonsense_manifest"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(
    recollect: CommandLine, backup: Path, damage: str
) -> None:
    database, manifest = file_of(backup), backup / "manifest.json"
    content = bytearray(database.read_bytes())
    match damage:
        case "flipped":
            content[len(content) // 2] ^= 1
            database.write_bytes(content)
        case "shortened":
            database.write_bytes(content[: -len(content) // 2])
        case "missing":
            database.unlink()
        case "nonsense_manifest":
            manifest.write_text("{}")
    restored = recollect.folder / "restored"
    target = into(restored)
    answer = recollect("restore", backup, *target)
    assert answer.code == 1
    assert answer.err.startswith("Error: ")
    assert not restored.exists() or not list(restored.glob("recollect.db*"))
    # There is room for a whole one as before.
    assert contents(restored) == []


def test_a_backup_of_a_newer_schema_is_refused(recollect: CommandLine, backup: Path) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "manifest.json").write_text(json.dumps({**manifest, "schema": 10_000}))
    answer = recollect("restore", backup, *into(recollect.folder / "restored"), "--json")
    assert (answer.code, answer.json()["error"]["code"]) == (1, "schema")
