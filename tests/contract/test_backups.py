"""Backups beside the data: the newest are kept, and nothing else is ever removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from recollect.cli.backups.folders import restore_into
from recollect.cli.backups.servers import restore_into_server
from recollect.orchestrator.storage.postgres import copies
from recollect.orchestrator.storage.properties import STORE_ID, get_property
from recollect.protocol import operations as ops
from recollect.protocol.errors import StorageFull
from tests.contract.test_tiers import add
from tests.faults.tools.disk import files_limited
from tests.harness.postgres import bare_database, new_database
from tests.harness.worlds import World


@pytest.fixture
def data(world: World) -> Path:
    return Path(world.settings.storage.data)


def last_file(made: dict[str, Any]) -> Path:
    """The file of a backup that holds what was stored."""
    [found] = [path for path in Path(made["path"]).iterdir() if path.name != "manifest.json"]
    return found


def restored_from(world: World, backup: Path, new: Path) -> dict[str, Any]:
    """What the backup says of itself, after it was restored elsewhere and read there."""
    given: dict[str, Any] = {"begun": lambda total: None, "copied": lambda count: None}
    url = world.settings.storage.url
    if url == "sqlite":
        manifest = restore_into(backup, new, **given)
    else:
        url = bare_database()
        manifest = restore_into_server(backup, url, **given)
    elsewhere = World(url, new)
    for way in (ops.SearchMemory, ops.SemanticSearch, ops.Recall):
        [found] = elsewhere(way("worth keeping"))["results"]
        assert found["content"] == "Worth keeping"
    assert elsewhere(ops.VerifyAudit())["valid"]
    assert elsewhere(ops.CheckIntegrity())["sound"]
    # Both may be served from now on, so they do not go by one name.
    assert store_id(elsewhere) != store_id(world)
    elsewhere.close()
    return manifest


def store_id(world: World) -> str | None:
    async def read() -> str | None:
        return await world.storage.read(lambda session: get_property(session, STORE_ID))

    return world.run(read())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_row_that_is_larger_than_one_part_of_a_copy_comes_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(copies, "CHUNK_BYTES_MAX", 4_096)
    world = World(new_database(), tmp_path / "data")
    try:
        add(world, "Worth keeping", value={"log": "x" * 100_000})
        made = world(ops.Backup(str(tmp_path / "backup")))
        restored_from(world, Path(made["path"]), tmp_path / "new")
    finally:
        world.close()


def test_the_newest_backups_are_kept_and_can_be_restored(
    world: World, data: Path, tmp_path: Path
) -> None:
    add(world, "Worth keeping")
    backups = data / "backups"
    made = [world(ops.KeepBackup(keep=2)) for _ in range(3)]
    assert [one["removed"] for one in made] == [0, 0, 1]
    assert names(backups) == [Path(one["path"]).name for one in made[1:]]
    # What is not certainly such a backup stays, whatever it looks like.
    mine = Path(made[1]["path"])
    (mine / "note.txt").write_text("mine")
    (backups / "by-hand").mkdir()
    (backups / "20200101T000000.000000Z").write_text("a file")
    strange = backups / "20200101T000000.000001Z"
    strange.mkdir()
    (strange / "manifest.json").write_text(json.dumps({"of": "something else"}))
    # What a kill left of a backup goes.
    torn = backups / "20200101T000000.000002Z"
    torn.mkdir()
    (torn / Path(last_file(made[-1])).name).write_bytes(b"half")
    last = world(ops.KeepBackup(keep=1))
    assert last["removed"] == 1
    left = {"by-hand", "20200101T000000.000000Z", strange.name, mine.name}
    assert set(names(backups)) == left | {Path(last["path"]).name}
    restored = restored_from(world, Path(last["path"]), tmp_path / "new")
    with files_limited(os.getpid(), last["bytes"] // 2), pytest.raises(StorageFull):
        world(ops.KeepBackup(keep=1))
    assert set(names(backups)) == left | {Path(last["path"]).name}
    assert (restored["seq"], restored["sha256"]) == (last["seq"], last["sha256"])
