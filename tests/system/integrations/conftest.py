"""One orchestrator for all tests of a module; each test has names of its own in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes import OrchestratorProcess


@pytest.fixture(scope="module")
def endpoint(storage: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a running orchestrator listens."""
    data: Path = tmp_path_factory.mktemp("integrations") / "data"
    with OrchestratorProcess(data) as process:
        yield process.endpoint
