"""Backups beside the data: the newest are kept, and nothing else is ever removed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from recollect.cli.restoring import restore_into
from recollect.protocol import operations as ops
from recollect.protocol.errors import StorageFull, Unsupported
from tests.contract.test_tiers import add
from tests.faults.tools.disk import files_limited
from tests.harness.worlds import World


@pytest.fixture
def data(world: World) -> Path:
    return Path(world.settings.storage.data)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_backups_are_kept_and_can_be_restored(
    world: World, data: Path, tmp_path: Path
) -> None:
    add(world, "Worth keeping")
    if world.settings.storage.url != "sqlite":
        with pytest.raises(Unsupported, match="pg_dump"):
            world(ops.KeepBackup())
        assert not (data / "backups").exists()
        return
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
    (torn / "recollect.db").write_bytes(b"half")
    last = world(ops.KeepBackup(keep=1))
    assert last["removed"] == 1
    left = {"by-hand", "20200101T000000.000000Z", strange.name, mine.name}
    assert set(names(backups)) == left | {Path(last["path"]).name}
    restored = restore_into(
        Path(last["path"]), tmp_path / "new", begun=lambda n: None, copied=lambda n: None
    )
    with files_limited(os.getpid(), 65_536), pytest.raises(StorageFull):
        world(ops.KeepBackup(keep=1))
    assert set(names(backups)) == left | {Path(last["path"]).name}
    assert (restored["seq"], restored["sha256"]) == (last["seq"], last["sha256"])
