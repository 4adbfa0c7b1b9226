"""Schedules are read as cron reads them."""

from __future__ import annotations

import pytest

from recollect.config.cron import SHORT, BadSchedule, read_schedule


def test_an_expression_stands_for_its_numbers() -> None:
    schedule = read_schedule("*/20 1-3,22 * JAN-mar/2 *")
    assert schedule.minutes == (0, 20, 40)
    assert schedule.hours == (1, 2, 3, 22)
    assert schedule.months == (1, 3)
    assert (schedule.days, schedule.weekdays) == ((), ())
    assert read_schedule("10/20 0 1,15 * *").minutes == (10, 30, 50)


@pytest.mark.parametrize(
    ("text", "weekdays"),
    [("0", (0,)), ("7", (0,)), ("sun", (0,)), ("1-5", (1, 2, 3, 4, 5)), ("fri-sun", (0, 5, 6))],
)
def test_a_week_begins_and_ends_with_sunday(text: str, weekdays: tuple[int, ...]) -> None:
    assert read_schedule(f"0 0 * * {text}").weekdays == weekdays


@pytest.mark.parametrize("name", SHORT)
def test_short_names_are_schedules(name: str) -> None:
    assert read_schedule(name) == read_schedule(SHORT[name])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "five fields"),
        ("* * * *", "not 4"),
        ("* * * * * *", "not 6"),
        ("@reboot", "@hourly"),
        ("60 * * * *", "'60' for the minute, which is from 0 to 59"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of the week"),
        ("* * * * mo", "'mo' for the day of the week"),
        ("5-1 * * * *", "empty"),
        ("*/0 * * * *", "empty"),
        ("1,,2 * * * *", "not understood"),
        ("*-5 * * * *", "not understood"),
        ("-1 * * * *", "not understood"),
        ("0 0 31 2 *", "never comes"),
        ("0 0 30-31 feb *", "never comes"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        read_schedule(text)
    assert said in str(caught.value)
