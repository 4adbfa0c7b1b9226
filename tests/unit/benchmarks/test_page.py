"""The page of figures is made from the kept results, and from nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import page, results
from benchmarks.__main__ import merged


def test_the_page_is_what_its_results_say() -> None:
    assert page.PAGE.read_text() == page.text(), "run `python -m benchmarks.page`"


def test_a_part_that_was_not_measured_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_RESULTS", str(tmp_path))
    assert page.text().count("Not measured yet.") == len(page.SECTIONS)


def test_a_failed_program_and_a_missed_bound_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_RESULTS", str(tmp_path))
    row = {"name": "get", "measured": "9 µs", "beside": "echo 1 µs", "ratio": 9.0, "bound": "≤ 2"}
    sections = [
        {"title": "The core", "rows": [{**row, "met": False}]},
        {"title": "Redis", "rows": [], "failed": "there is no redis-server"},
    ]
    results.keep("limits", {"sections": sections}, "on a busy machine")
    shown = page.text()
    assert "| get | 9 µs | echo 1 µs | 9.00 | ≤ 2 | **missed** |" in shown
    assert "Could not be measured: there is no redis-server" in shown
    assert "Taken on a busy machine." in shown


def test_what_is_measured_anew_replaces_its_own_and_leaves_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_RESULTS", str(tmp_path))

    def section(program: str, title: str) -> dict[str, object]:
        taken = {"at": "2026-01-31T12:00:00+00:00", "load_at_start": 0.3, "note": "at night"}
        return {"program": program, "title": title, "rows": [], **taken}

    results.keep("limits", {"sections": [section("search", "Old"), section("redis", "Redis")]})
    results.keep("limits", {"sections": merged([section("search", "New"), section("core", "C")])})
    shown = page.text()
    places = [shown.index(f"### {title}\n") for title in ("C", "Redis", "New")]
    assert places == sorted(places)
    assert "### Old" not in shown
    assert "*2026-01-31, load 0.3 before. Taken at night.*" in shown


def test_a_store_that_cannot_be_measured_does_not_hide_the_others(tmp_path: Path) -> None:
    """Through the program, with a store whose package does not exist."""
    script = (
        "from benchmarks.peers import __main__ as program, environments as e\n"
        "program.PEERS = (e.Peer('Nothing', 'nothing', ('no-such-package-recollect==0',)),)\n"
        "program.install = lambda peer: (_ for _ in ()).throw(e.CannotInstall('is not there'))\n"
        "program.main(['--sizes', '100'])\n"
    )
    environment = {**os.environ, "BENCH_RESULTS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "is not there" in done.stdout
