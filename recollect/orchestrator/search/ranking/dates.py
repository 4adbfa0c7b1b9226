"""Dates as people write them in a question, read as spans of time.

What names a day, a month, a season or a year is read, and the relative words that are unambiguous
("yesterday", "last week", "three days ago"). A date without a year is meant of any recent year.
Everything is taken as UTC, as moments are stored: a question about a day is never so precise that
some hours would matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import partial

import msgspec

from recollect.orchestrator.embedding.words import words_of
from recollect.orchestrator.search.calendar_words import WEEKDAYS, month_number

US_PER_S = 1_000_000
YEARS_BACK = 10
LOWER_WEEKDAYS = tuple(day.lower() for day in WEEKDAYS)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"((?:19|20)\d\d)\b"
_WHEN = r"(?:in|during|since|until|early|late|mid|of|by|before|after|from|for)"

# Without any of these words, or a year, no pattern finds anything, which is seen sooner.
_MONTHS = """
jan january feb february mar march apr april may jun june jul july aug august sep sept september
oct october nov november dec december
"""
_month_words = frozenset(_MONTHS.split())
_NEAR = "yesterday today tonight morning week weekend month year ago"
_near_words = frozenset((*_NEAR.split(), *LOWER_WEEKDAYS))
_year = re.compile(r"(?:19|20)\d\d").search

Days = tuple[date, date]


class Span(msgspec.Struct, frozen=True):
    """A stretch of time, its end not included."""

    start_us: int
    end_us: int


def read_dates(text: str, now_us: int) -> tuple[tuple[Span, ...], str]:
    """The spans that a text speaks of, and the text without the dates that name them.

    Relative words stay in the text and count only where no date is given: somebody may be quoting
    them, and a memory may hold the very words.
    """
    today = datetime.fromtimestamp(now_us / US_PER_S, UTC).date()
    days: list[Days] = []
    rest = text
    words = frozenset(words_of(text))
    if not _month_words.isdisjoint(words) or _year(text) is not None:
        for pattern, read in _NAMED:
            rest = pattern.sub(partial(_take, read=read, today=today, days=days), rest)
    if not days and not _near_words.isdisjoint(words):
        for pattern, read in _RELATIVE:
            for match in pattern.finditer(text):
                _take(match, read, today, days)
    if len(days) == 2 and not words.isdisjoint(("between", "from")):
        days = [(min(first for first, _ in days), max(end for _, end in days))]
    spans = tuple(Span(_us(first), _us(end)) for first, end in days)
    return spans, " ".join(rest.split()) if rest != text else text


def _take(
    match: re.Match[str],
    read: Callable[[re.Match[str], date], Iterable[Days]],
    today: date,
    days: list[Days],
) -> str:
    try:
        days.extend(read(match, today))
    except (ValueError, OverflowError):  # no calendar has this date
        return match[0]
    return " "


def _us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * US_PER_S


def _one_day(day: date) -> Days:
    return day, day + timedelta(days=1)


def _months(year: int, month: int, count: int) -> Days:
    years, end = divmod(month - 1 + count, 12)
    return date(year, month, 1), date(year + years, end + 1, 1)


def _month_number(name: str) -> int:
    # Three letters tell all months apart, also of a name cut short in another way, as "Sept".
    number = month_number(name[:3])
    assert number is not None, "only names of months are matched"
    return number


def _years(year: str | None, today: date) -> Iterable[int]:
    return (int(year),) if year else range(today.year, today.year - YEARS_BACK, -1)


def _day_of(day: str, month: str, year: str | None, today: date) -> list[Days]:
    if year is None and int(day) == 29 and _month_number(month) == 2:
        return []
    return [_one_day(date(y, _month_number(month), int(day))) for y in _years(year, today)]


def _ago(match: re.Match[str], today: date) -> list[Days]:
    words, unit = match[1].lower().split()[-1], match[2].lower()
    count = {"a": 1, "an": 1, "couple": 2, "few": 3}.get(words.removesuffix(" of"), 0)
    if not count:
        count = int(words) if words.isdigit() else NUMBERS.index(words) + 1
    # "Two months ago" is no exact day: allow half a unit on either side.
    around = timedelta(days=UNIT_DAYS[unit] // 2)
    middle = today - timedelta(days=count * UNIT_DAYS[unit])
    return [(middle - around, middle + around + timedelta(days=1))]


def _near(match: re.Match[str], today: date) -> list[Days]:
    words = match[1].lower()
    if words == "yesterday":
        return [_one_day(today - timedelta(days=1))]
    if words in ("today", "tonight", "this morning"):
        return [_one_day(today)]
    which, unit = words.split()
    month, year = today.replace(day=1), today.replace(month=1, day=1)
    if which == "this":
        start = {"month": month, "year": year}.get(unit, today - timedelta(days=today.weekday()))
        return [(start, today + timedelta(days=1))]
    if unit == "year":
        return [_months(today.year - 1, 1, 12)]
    if unit == "month":
        return [((month - timedelta(days=1)).replace(day=1), month)]
    # Seven days before last Sunday or the seven days up to now: people mean either.
    return [(today - timedelta(days=today.weekday() + 7), today)]


def _weekday(match: re.Match[str], today: date) -> list[Days]:
    back = (today.weekday() - LOWER_WEEKDAYS.index(match[1].lower())) % 7 or 7
    return [_one_day(today - timedelta(days=back))]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b{text}", re.IGNORECASE)


_NAMED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Iterable[Days]]], ...] = (
    (
        _pattern(rf"{_YEAR}-(\d\d)-(\d\d)\b"),
        lambda m, _: [_one_day(date(int(m[1]), int(m[2]), int(m[3])))],
    ),
    (
        _pattern(rf"(?:on\s+)?(?:the\s+)?{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s*{_YEAR})?"),
        lambda m, today: _day_of(m[1], m[2], m[3], today),
    ),
    (
        _pattern(rf"(?:on\s+)?{_MONTH}\s+(?:the\s+)?{_DAY}(?:,?\s*{_YEAR})?"),
        lambda m, today: _day_of(m[2], m[1], m[3], today),
    ),
    (
        _pattern(rf"(?:{_WHEN}\s+)?{_MONTH},?\s+(?:of\s+)?{_YEAR}"),
        lambda m, _: [_months(int(m[2]), _month_number(m[1]), 1)],
    ),
    (
        _pattern(
            rf"(?:{_WHEN}\s+)?(?:the\s+)?(spring|summer|autumn|fall|winter),?\s+(?:of\s+)?{_YEAR}"
        ),
        lambda m, _: [_months(int(m[2]), SEASONS[m[1].lower()], 3)],
    ),
    (
        _pattern(rf"{_WHEN}\s+{_MONTH}"),
        lambda m, today: [_months(y, _month_number(m[1]), 1) for y in _years(None, today)],
    ),
    (_pattern(rf"(?:{_WHEN}|year)\s+{_YEAR}"), lambda m, _: [_months(int(m[1]), 1, 12)]),
)
_RELATIVE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Iterable[Days]]], ...] = (
    (
        _pattern(
            r"(yesterday|today|tonight|this morning"
            r"|(?:last|past|this)\s+(?:week|weekend|month|year))\b"
        ),
        _near,
    ),
    (
        _pattern(
            rf"(\d{{1,3}}|an?|(?:a\s+)?couple(?=\s+of)|(?:a\s+)?few|{'|'.join(NUMBERS)})"
            r"(?:\s+of)?\s+(day|week|month|year)s?\s+ago\b"
        ),
        _ago,
    ),
    (_pattern(rf"(?:on|last|this past)\s+({'|'.join(LOWER_WEEKDAYS)})\b"), _weekday),
)
