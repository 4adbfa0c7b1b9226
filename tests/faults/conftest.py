"""What the fault tests share: the ledger is written when they are done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import ledger


@pytest.fixture(scope="session", autouse=True)
def _write_ledger() -> Iterator[None]:
    yield
    ledger.RUN.write()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was tried, one line a promise."""
    for promise, (cases, violations) in sorted(
        ledger.RUN.sums.items(), key=lambda entry: int(entry[0].removeprefix("P"))
    ):
        terminalreporter.write_line(f"{promise:>4} {cases:>10,} cases {violations:>6,} violations")
