"""The folder of a backup belongs to the one that made it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.cli.backups.folders import back_up_unserved


def test_what_another_backup_made_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recollect.db").touch()
    target = tmp_path / "backup"

    def meanwhile(mask: int) -> int:
        target.mkdir()
        (target / "recollect.db").write_text("a copy")
        return mask

    # Asked between the look whether the folder is there and the making of it.
    monkeypatch.setattr(os, "umask", meanwhile)
    with pytest.raises(FileExistsError):
        back_up_unserved(tmp_path, target)
    assert (target / "recollect.db").read_text() == "a copy"
