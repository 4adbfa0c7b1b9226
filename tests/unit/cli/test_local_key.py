"""The key of this machine: used for its own orchestrator where that asks for keys, and else not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.cli.keys import reach
from recollect.cli.local_key import (
    USUAL_CONFIG,
    USUAL_FOLDER,
    data_folder,
    is_everywhere,
    key_for,
    local_key,
    reachable,
)
from recollect.config.loading import FILE_NAME
from recollect.config.settings import StorageSettings
from recollect.orchestrator.access.own_keys import ensure_own_keys
from recollect.orchestrator.storage.copies import DATABASE_NAME

HERE = "tcp://127.0.0.1:7399"


def served(folder: Path, endpoint: str = HERE, *, keys: bool = True) -> Path:
    ensure_own_keys(folder)
    facts = {"pid": 1, "endpoint": endpoint, "version": "0", "keys": keys}
    (folder / "orchestrator.json").write_text(json.dumps(facts))
    return folder


@pytest.mark.parametrize(
    ("endpoint", "reached"),
    [
        (HERE, HERE),
        ("tcp://0.0.0.0:7331", "tcp://127.0.0.1:7331"),
        ("tcp://*:7331", "tcp://127.0.0.1:7331"),
        ("tcp://[::]:7331", "tcp://[::1]:7331"),
        ("tcp://192.168.0.5:7331", "tcp://192.168.0.5:7331"),
        ("ipc:///tmp/x", "ipc:///tmp/x"),
    ],
)
def test_an_endpoint_is_reached_from_its_own_machine(endpoint: str, reached: str) -> None:
    assert reachable(endpoint) == reached
    assert is_everywhere(endpoint) is (reached != endpoint)


def test_it_is_used_for_the_orchestrator_of_the_folder_alone(tmp_path: Path) -> None:
    folder = served(tmp_path / "data")
    assert local_key(folder, HERE) == folder / "keys" / "local.key"
    assert local_key(folder, "tcp://127.0.0.1:7398") is None
    assert local_key(folder, "tcp://192.168.0.5:7399") is None
    assert local_key(tmp_path / "elsewhere", HERE) is None
    assert local_key(served(tmp_path / "wide", "tcp://0.0.0.0:7399"), HERE) is not None


def test_it_is_not_used_where_no_keys_are_asked_for(tmp_path: Path) -> None:
    assert local_key(served(tmp_path / "data", keys=False), HERE) is None


def test_a_key_that_is_named_comes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_KEY_FILE", raising=False)
    monkeypatch.setenv("RECOLLECT_DATA", str(served(tmp_path / "data")))
    assert key_for(HERE, None) == str(tmp_path / "data" / "keys" / "local.key")
    assert key_for(HERE, "mine.key") == "mine.key"
    monkeypatch.setenv("RECOLLECT_KEY_FILE", "other.key")
    assert key_for(HERE, None) is None, "the client itself reads the variable"


def test_the_data_folder_is_named_by_the_environment_or_the_configuration_or_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RECOLLECT_DATA", "RECOLLECT_STORAGE_DATA", "RECOLLECT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert data_folder() == Path("./recollect-data")
    Path("memory_config.yaml").write_text("storage:\n  data: /srv/memory\n")
    assert data_folder() == Path("/srv/memory")
    monkeypatch.setenv("RECOLLECT_DATA", "/srv/other")
    assert data_folder() == Path("/srv/other")


def test_what_is_written_here_again_to_save_time_is_as_elsewhere() -> None:
    assert StorageSettings().data == USUAL_FOLDER
    assert FILE_NAME == USUAL_CONFIG
    assert reach.DATABASE_NAME == DATABASE_NAME
