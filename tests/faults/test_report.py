"""The page of the promises says what was tried, and nothing better."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults import ledger, report
from tests.faults.ledger import Trial
from tests.faults.promises import PROMISES

TRIED = re.compile(r'Trial\("(P\d+)"\)')


def test_every_promise_is_in_the_table_and_is_tried() -> None:
    assert list(PROMISES) == [f"P{number}" for number in range(1, 26)]
    tests = Path(__file__).parent.rglob("test_*.py")
    tried = {name for path in tests for name in TRIED.findall(path.read_text())}
    assert tried == set(PROMISES)


def test_what_was_violated_or_not_tried_is_plain_to_see() -> None:
    sums = {name: (3, 0) for name in PROMISES} | {"P3": (1_000, 2)}
    del sums["P7"]
    page = report.page(sums, {"date": "today"}, ["`test_x`"], ["`test_y`: no strace"])
    assert "**23 of 25 held.**" in page
    [third] = [line for line in page.splitlines() if line.startswith("| P3 |")]
    assert "| 1,000 | **2** |" in third
    [seventh] = [line for line in page.splitlines() if line.startswith("| P7 |")]
    assert "| 0 | **not tried** |" in seventh
    assert "- `test_x`" in page and "- `test_y`: no strace" in page and "| date | today |" in page


def test_what_is_tried_aside_is_in_no_table() -> None:
    before = dict(ledger.RUN.sums)
    with ledger.aside() as book, Trial("P1") as trial:
        trial.case(7)
    assert book.sums == {"P1": (7, 0)}
    assert before == ledger.RUN.sums


def test_the_machine_and_what_runs_on_it_are_named() -> None:
    facts = report.facts(120.0)
    assert facts["duration"] == "2 minutes"
    assert all(facts.values()), facts
    assert facts["SQLite"].startswith("3.")
