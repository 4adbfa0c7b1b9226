"""The locks fit pyproject.toml, and the check of that notices when they do not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = {"requirements.lock": "all", "requirements-dev.lock": "dev"}
PYPROJECT = """
[project]
dependencies = ["zmq>=26"]
[project.optional-dependencies]
server = ["Some_Thing>=2,<3"]
all = ["recollect[server]"]
"""
LOCK = """
# made by a program
some-thing==2.1 ; python_full_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
zmq==27.0 \\
    --hash=sha256:cc
"""


def loaded() -> Any:
    """The program that `make` runs before it installs anything."""
    spec = importlib.util.spec_from_file_location("lock", ROOT / ".ci" / "lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "extra"), LOCKS.items())
def test_a_lock_holds_what_pyproject_asks_for(name: str, extra: str) -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    found = loaded().misfits((ROOT / name).read_text(), pyproject, extra)
    assert found == [], f"run `make lock`: {found}"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_place_to_get_anything_from(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text and "--index" not in text and "--find-links" not in text


def test_both_locks_hold_the_same_versions() -> None:
    small, large = (loaded().locked((ROOT / name).read_text()) for name in LOCKS)
    differing = {name: (small[name], large[name]) for name in small if name in large}
    assert not {name: two for name, two in differing.items() if two[0] != two[1]}


@pytest.mark.parametrize(
    ("lock", "pyproject", "said"),
    [
        (LOCK, PYPROJECT, []),
        (LOCK.replace("zmq", "zzz"), PYPROJECT, ["zmq>=26 is not locked"]),
        (LOCK, PYPROJECT.replace(">=2,<3", ">=3"), ["Some_Thing>=3 is locked as 2.1"]),
        (LOCK.replace(" \\\n    --hash=sha256:cc", ""), PYPROJECT, ["zmq 27.0 has no hash"]),
    ],
)
def test_what_does_not_fit_is_named(lock: str, pyproject: str, said: list[str]) -> None:
    assert loaded().misfits(lock, pyproject, "all") == said
