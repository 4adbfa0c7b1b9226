"""How text, times, sizes and strengths are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect.cli import output

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("character", ["\x1b", "\x07", "\r", "\x00", "\x9b", "\u202e", "\u2066"])
def test_control_characters_do_not_reach_the_terminal(character: str) -> None:
    assert character not in output.clean(f"before{character}after")
    assert character not in output.one_line(f"before{character}after")


def test_what_is_harmless_is_left_alone() -> None:
    text = "Zürich\t東京 🎉\n[not markup]"
    assert output.clean(text) == text
    assert output.one_line(" several\n\nlines  here ") == "several lines here"


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(1.0, "■■■■■"), (0.6, "■■■··"), (0.001, "■····"), (0.0, "·····"), (7.0, "■■■■■")],
)
def test_strength_is_a_bar_that_is_empty_only_at_nothing(fraction: float, shown: str) -> None:
    assert output.bar(fraction).plain == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "just now"),
        (30, "30 s ago"),
        (60, "1 minute ago"),
        (7300, "2 hours ago"),
        (86_400 * 3, "3 days ago"),
        (86_400 * 800, "2 years ago"),
        (-3600 * 5, "in 5 hours"),
    ],
)
def test_moments_are_told_by_their_distance(seconds: int, shown: str) -> None:
    moment = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    assert output.ago(moment, NOW) == shown


def test_numbers_come_with_their_unit() -> None:
    assert output.size(999) == "999 bytes"
    assert output.size(131_072) == "131.1 kB"
    assert output.size(5 * 10**15) == "5000.0 TB"
    assert output.counted(1, "memory") == "1 memory"
    assert output.counted(1200, "memory") == "1,200 memories"
    assert output.counted(0, "change") == "0 changes"
