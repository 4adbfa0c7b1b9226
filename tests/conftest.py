"""What every tier of tests may use, and what is told at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import ledger
from tests.harness import postgres
from tests.harness.processes import OrchestratorProcess


@pytest.fixture
def orchestrator(tmp_path: Path) -> Iterator[OrchestratorProcess]:
    """A running orchestrator on an empty data folder."""
    with OrchestratorProcess(tmp_path / "data") as process:
        yield process


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process waits for another in the end."""
    items.sort(key=lambda item: "tests/faults/" not in item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave no server behind; write down what became of the promises.

    A run in several processes has one book.
    """
    postgres.stop()
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["promises"] = ledger.RUN.sums
    elif ledger.RUN.sums:
        ledger.RUN.write()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what one of the processes has tried."""
    told = getattr(node, "workeroutput", {})
    for promise, (cases, violations) in told.get("promises", {}).items():
        ledger.RUN.add(promise, cases, violations)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was tried, one line a promise."""
    for promise, (cases, violations) in sorted(
        ledger.RUN.sums.items(), key=lambda entry: int(entry[0].removeprefix("P"))
    ):
        terminalreporter.write_line(f"{promise:>4} {cases:>10,} cases {violations:>6,} violations")
