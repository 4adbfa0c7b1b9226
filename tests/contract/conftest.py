"""Every contract test runs on every storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.postgres import new_database
from tests.harness.worlds import World


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_url(request: pytest.FixtureRequest) -> str:
    return "sqlite" if request.param == "sqlite" else new_database()


@pytest.fixture
def world(storage_url: str, tmp_path: Path) -> Iterator[World]:
    world = World(storage_url, tmp_path / "data")
    yield world
    world.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where documents lie that the orchestrator may read."""
    folder = tmp_path / "library"
    folder.mkdir()
    return folder
