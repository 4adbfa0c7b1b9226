"""Where models are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.models.catalogue import DEFAULT, entry_of
from recollect.models.errors import ModelDamaged, UnknownModel
from recollect.models.locating import find, installed_in, models_folder


def put_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"weights")
    (folder / "tokenizer.json").write_bytes(b"{}")
    return folder


def test_the_environment_says_where_models_lie() -> None:
    home = {"HOME": "/home/ada"}
    assert models_folder(home) == Path("/home/ada/.local/share/recollect/models")
    assert models_folder({**home, "XDG_DATA_HOME": "/d"}) == Path("/d/recollect/models")
    assert models_folder({**home, "XDG_DATA_HOME": "d"}) == models_folder(home)
    assert models_folder({**home, "XDG_DATA_HOME": "/d", "RECOLLECT_MODELS": "/m"}) == Path("/m")


def test_any_folder_with_the_two_files_is_a_model(tmp_path: Path) -> None:
    folder = put_model(tmp_path / "mine")
    found = find(str(folder), {"RECOLLECT_MODELS": "/nowhere"})
    assert found is not None
    assert (found.name, found.folder) == ("mine", folder)
    (folder / "tokenizer.json").unlink()
    assert find(str(folder)) is None


def test_an_installed_model_is_found_by_name(tmp_path: Path) -> None:
    environ = {"RECOLLECT_MODELS": str(tmp_path)}
    assert find(DEFAULT, environ) is None
    put_model(tmp_path / DEFAULT)
    found = find(DEFAULT, environ)
    assert found is not None
    assert found.traits.dimensions == 384
    assert [model.name for model in installed_in(tmp_path)] == [DEFAULT]
    assert list(installed_in(tmp_path / "absent")) == []


def test_a_folder_can_say_how_its_model_wants_to_be_used(tmp_path: Path) -> None:
    folder = put_model(tmp_path / "e5")
    (folder / "recollect-model.json").write_text(
        '{"name": "e5-small", "query_prefix": "query: ", "pooling": "cls", "tokens_max": 512}'
    )
    found = find(str(folder))
    assert found is not None
    assert found.name == "e5-small"
    assert found.traits.query_prefix == "query: "
    assert (found.traits.pooling, found.traits.tokens_max) == ("cls", 512)


def test_a_folder_whose_word_cannot_be_read_is_refused(tmp_path: Path) -> None:
    folder = put_model(tmp_path / "e5")
    (folder / "recollect-model.json").write_text('{"name": "e5", "pooling": "none"}')
    with pytest.raises(ModelDamaged, match="pooling"):
        find(str(folder))


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "no-such-model", "a\nb"])
def test_a_name_that_leads_nowhere_finds_nothing(tmp_path: Path, name: str) -> None:
    put_model(tmp_path / "up")
    environ = {"RECOLLECT_MODELS": str(tmp_path / "models")}
    assert find(name, environ) is None


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(UnknownModel, match=DEFAULT):
        entry_of("gpt")


@pytest.mark.parametrize("name", ["x" * 5000, "a\x00b", "", "..", "a/b"])
def test_a_name_that_no_folder_has_is_not_found(name: str) -> None:
    assert find(name, {"RECOLLECT_MODELS": "/nowhere"}) is None


def test_a_home_of_nobody_is_no_model() -> None:
    assert find("~nobody-of-this-name/model") is None
