"""Fixtures that every tier of tests may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes import OrchestratorProcess


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """A running orchestrator on an empty data folder."""
    with OrchestratorProcess(tmp_path / "data") as process:
        yield process
