"""A model is installed whole and checked, or not at all."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from recollect.models.errors import ChecksumMismatch, ModelUnavailable, SourceFailed
from recollect.models.installing import Progress, install, is_whole
from recollect.models.locating import MANIFEST_FILE, find
from recollect.models.sources import Folder, Report
from tests.unit.models.samples import CONTENTS, left_in, tiny

WHOLE = {"tiny", f"tiny/{MANIFEST_FILE}", *(f"tiny/{name}" for name in CONTENTS)}


def folder_with(path: Path, **replaced: bytes) -> Folder:
    path.mkdir()
    for name, content in CONTENTS.items():
        (path / name).write_bytes(replaced.get(name.partition(".")[0], content))
    return Folder(str(path))


class Acting:
    """A source that brings the right files, and does something before the last one."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        self.asked = 0

    def title(self) -> str:
        return "a source that acts"

    def fetch(self, names: Mapping[str, int], files: Path, scratch: Path, report: Report) -> None:
        self.asked += 1
        first, *others = names
        (files / first).write_bytes(CONTENTS[first])
        self.act()
        for name in others:
            (files / name).write_bytes(CONTENTS[name])


def test_a_model_is_installed_with_what_is_known_of_it(tmp_path: Path) -> None:
    source = folder_with(tmp_path / "from")
    seen: list[Progress] = []
    outcome = install(tiny(), tmp_path / "models", sources=[source], report=seen.append)
    assert outcome.source == source.title()
    assert outcome.model.folder == tmp_path / "models" / "tiny"
    assert left_in(tmp_path / "models") == WHOLE
    assert is_whole(tiny(), outcome.model.folder)
    total = sum(map(len, CONTENTS.values()))
    assert seen[-1] == Progress(source.title(), total, total)
    found = find("tiny", {"RECOLLECT_MODELS": str(tmp_path / "models")})
    assert found == outcome.model
    assert found.traits.dimensions == 3


def test_a_second_install_asks_no_source(tmp_path: Path) -> None:
    source = Acting(lambda: None)
    install(tiny(), tmp_path, sources=[source])
    before = (tmp_path / "tiny" / "model.onnx").stat()
    again = install(tiny(), tmp_path, sources=[source])
    assert again.source is None
    assert source.asked == 1
    assert (tmp_path / "tiny" / "model.onnx").stat() == before


@pytest.mark.parametrize("wrong", [b"weights!" * 1000, b"weights", b"weights " * 1001])
def test_a_wrong_file_is_refused_and_nothing_is_left(tmp_path: Path, wrong: bytes) -> None:
    source = folder_with(tmp_path / "from", model=wrong)
    with pytest.raises(ChecksumMismatch, match=r"model\.onnx"):
        install(tiny(), tmp_path / "models", sources=[source])
    assert left_in(tmp_path / "models") == set()


def test_the_next_source_is_asked_after_one_that_failed(tmp_path: Path) -> None:
    sources = [
        Folder(str(tmp_path / "absent")),
        folder_with(tmp_path / "wrong", tokenizer=b'{"words": {}}'),
        folder_with(tmp_path / "right"),
    ]
    outcome = install(tiny(), tmp_path / "models", sources=sources)
    assert outcome.source == sources[2].title()
    assert left_in(tmp_path / "models") == WHOLE


def test_the_error_says_what_each_source_answered(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(ModelUnavailable) as failed:
        install(tiny(), tmp_path / "models", sources=[Folder(str(one)), Folder(str(two))])
    for folder in (one, two):
        assert f"the folder {folder}: there is no model.onnx in it" in failed.value.message
    assert len(failed.value.details["sources"]) == 2
    assert failed.value.retryable


def test_an_interrupted_install_leaves_nothing(tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(tiny(), tmp_path, sources=[Acting(interrupt)])
    assert left_in(tmp_path) == set()


def test_what_a_killed_installer_left_is_cleared_away(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=_install_and_be_killed, args=(tmp_path,))
    killed.start()
    killed.join(60)
    assert killed.exitcode == 7
    assert left_in(tmp_path) > {".tiny.staging"}
    assert find("tiny", {"RECOLLECT_MODELS": str(tmp_path)}) is None
    install(tiny(), tmp_path, sources=[Acting(lambda: None)])
    assert left_in(tmp_path) == WHOLE


def _install_and_be_killed(models: Path) -> None:
    install(tiny(), models, sources=[Acting(lambda: os._exit(7))])


def test_installers_at_once_do_the_work_once(tmp_path: Path) -> None:
    begun, others_started = threading.Event(), threading.Event()

    def hold_on() -> None:
        begun.set()
        assert others_started.wait(30)

    source = Acting(hold_on)
    outcomes: list[str | None] = []

    def run() -> None:
        outcomes.append(install(tiny(), tmp_path, sources=[source]).source)

    threads = [threading.Thread(target=run) for _ in range(4)]
    threads[0].start()
    assert begun.wait(30)
    for thread in threads[1:]:
        thread.start()
    others_started.set()
    for thread in threads:
        thread.join(30)
    assert source.asked == 1
    assert sorted(outcomes, key=str) == [None, None, None, source.title()]
    assert left_in(tmp_path) == WHOLE


def test_a_damaged_model_is_replaced(tmp_path: Path) -> None:
    install(tiny(), tmp_path, sources=[Acting(lambda: None)])
    (tmp_path / "tiny" / "model.onnx").write_bytes(b"bit rot")
    assert install(tiny(), tmp_path, sources=[Acting(lambda: None)]).source is not None
    assert is_whole(tiny(), tmp_path / "tiny")
    assert left_in(tmp_path) == WHOLE


def test_a_damaged_model_stays_if_no_source_has_a_better_one(tmp_path: Path) -> None:
    install(tiny(), tmp_path, sources=[Acting(lambda: None)])
    (tmp_path / "tiny" / "model.onnx").write_bytes(b"bit rot")

    def fail() -> None:
        raise SourceFailed("away")

    with pytest.raises(ModelUnavailable, match="away"):
        install(tiny(), tmp_path, sources=[Acting(fail)])
    assert left_in(tmp_path) == WHOLE
