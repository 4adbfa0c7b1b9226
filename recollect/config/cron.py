"""Schedules: cron expressions of five fields, read once into the numbers that they stand for.

As in cron itself, Sunday is 0 or 7, and where both a day of the month and a day of the week are
named, either will do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

SHORT: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
EXAMPLE = "such as `*/15 * * * *`, `30 3 * * 1-5` or `@daily`"

_PART = re.compile(r"(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/([0-9]{1,4}))?")


class BadSchedule(ValueError):
    """Text that is no schedule, with the reason."""


class _Field(Struct, frozen=True):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, MONTHS),
    _Field("day of the week", 0, 7, WEEKDAYS),
)


class Schedule(Struct, frozen=True):
    """What an expression stands for; an empty tuple stands for any day."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    """From 0, which is Sunday."""


def read_schedule(text: str) -> Schedule:
    """The schedule that an expression stands for. Raises BadSchedule."""
    given = text.strip().lower()
    if given.startswith("@") and given not in SHORT:
        raise BadSchedule(f"must be one of {', '.join(SHORT)}, or five fields")
    parts = SHORT.get(given, given).split()
    if len(parts) != len(FIELDS):
        raise BadSchedule(
            f"must have five fields (minute, hour, day of the month, month, day of the week), not "
            f"{len(parts)}"
        )
    read = [_numbers(field, part) for field, part in zip(FIELDS, parts, strict=True)]
    minutes, hours, days, months, weekdays = map(tuple, read)
    schedule = Schedule(
        minutes,
        hours,
        () if parts[2] == "*" else days,
        months,
        () if parts[4] == "*" else tuple(sorted({day % 7 for day in weekdays})),
    )
    longest = max(DAYS_OF_MONTH[month - 1] for month in months)
    if schedule.days and not schedule.weekdays and min(days) > longest:
        raise BadSchedule("never comes: those months have no such day")
    return schedule


def _numbers(field: _Field, text: str) -> list[int]:
    """The numbers that a field names, in their order."""
    numbers: set[int] = set()
    for part in text.split(","):
        matched = _PART.fullmatch(part)
        if matched is None or (matched[1] == "*" and matched[2] is not None):
            raise BadSchedule(f"has {part[:20]!r} for the {field.name}, which is not understood")
        if matched[1] == "*":
            low, high = field.low, field.high
        else:
            low = high = _number(field, matched[1])
            if matched[2] is not None:
                high = _number(field, matched[2])
                if field.names is WEEKDAYS and high == 0:
                    high = 7  # a range to Sunday
            elif matched[3] is not None:
                high = field.high
        step = int(matched[3] or 1)
        if high < low or step == 0:
            raise BadSchedule(f"has {part!r} for the {field.name}, which is empty")
        numbers.update(range(low, high + 1, step))
    return sorted(numbers)


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not text.isdigit() or len(text) > 2 or not field.low <= int(text) <= field.high:
        raise BadSchedule(
            f"has {text[:20]!r} for the {field.name}, which is from {field.low} to {field.high}"
        )
    return int(text)
