"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.ports import free_port
from tests.harness.processes import OrchestratorProcess
from tests.system.cli.commands import CommandLine, Up


@pytest.fixture
def recollect(orchestrator: OrchestratorProcess, tmp_path: Path) -> CommandLine:
    """The command line, pointed at a running orchestrator."""
    return CommandLine(tmp_path, orchestrator.endpoint)


@pytest.fixture
def alone(tmp_path: Path) -> CommandLine:
    """The command line, where no orchestrator runs."""
    return CommandLine(tmp_path, f"tcp://127.0.0.1:{free_port()}")


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """`recollect up`, ready."""
    running = Up(tmp_path)
    try:
        yield running.wait_ready()
    finally:
        running.close()
