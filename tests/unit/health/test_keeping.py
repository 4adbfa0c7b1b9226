"""What the health manager keeps outlives it, and stays small."""

from __future__ import annotations

from pathlib import Path

from recollect.health.keeping import HISTORY_NAME, HOUR_S, WEEK_S, History, Sizes
from recollect.health.states import Transition


def change(number: int) -> Transition:
    return Transition(float(number), "orchestrator", "healthy", "down", (f"number {number}",))


def test_changes_are_there_after_a_restart_and_bounded(tmp_path: Path) -> None:
    history = History(tmp_path, 5)
    for number in range(23):
        history.add(change(number))
    again = History(tmp_path, 5)
    assert again.latest(2) == [change(22), change(21)]
    assert again.last_of() == {"orchestrator": change(22)}
    assert len((tmp_path / HISTORY_NAME).read_bytes().splitlines()) == 5


def test_a_line_that_was_cut_off_costs_that_line(tmp_path: Path) -> None:
    History(tmp_path, 5).add(change(1))
    with (tmp_path / HISTORY_NAME).open("ab") as file:
        file.write(b'{"at_s": 2.0, "compo')
    assert History(tmp_path, 5).latest(5) == [change(1)]


def test_growth_is_measured_over_a_week_and_over_restarts(tmp_path: Path) -> None:
    start_s = 1_800_000_000.0
    for day in range(10):
        sizes = Sizes(tmp_path)
        for hour in range(24):
            sizes.note(start_s + (24 * day + hour) * HOUR_S, 1000 * (24 * day + hour))
    now_s = start_s + 240 * HOUR_S
    found = Sizes(tmp_path).growth(now_s, 240_000)
    assert found == {"growth_bytes": 168_000, "growth_days": 7.0}
    assert (tmp_path / "sizes.json").stat().st_size < 10_000


def test_a_clock_that_was_set_back_is_no_growth(tmp_path: Path) -> None:
    sizes = Sizes(tmp_path)
    sizes.note(1_800_000_000.0 + WEEK_S, 10**12)
    sizes.note(1_800_000_000.0, 500)
    assert sizes.growth(1_800_000_000.0 + 60, 700)["growth_bytes"] == 200
