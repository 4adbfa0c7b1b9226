"""What every tier of tests may use, and what is told at the end of a run."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import ledger, report
from tests.harness import postgres
from tests.harness.processes import OrchestratorProcess

BEGAN_S = time.monotonic()


def pytest_configure() -> None:
    """Who runs the tests in the background has them ignore Ctrl-C, and all that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
    """Print what was tried, one line a promise; and write the page about it, if one is wanted."""
    page = report.path_wanted()
    for promise, words, _, cases, violations, _ in report.rows(ledger.RUN.sums):
        if page is not None or promise in ledger.RUN.sums:
            found = violations.strip("*")
            found = found if found == "not tried" else f"{found} violations"
            terminalreporter.write_line(f"{promise:>4} {cases:>10} cases  {found:<14} {words}")
    if page is None:
        return
    took_s = time.monotonic() - BEGAN_S
    told = terminalreporter.stats
    failed = [f"`{test.nodeid}`" for test in told.get("failed", [])]
    skipped = [f"`{test.nodeid}`: {test.longrepr[2]}" for test in told.get("skipped", [])]
    page.write_text(report.page(ledger.RUN.sums, report.facts(took_s), failed, skipped))
    terminalreporter.write_line(f"The table is in {page.relative_to(report.ROOT)}.")
