"""Numbers, times and sizes as people read them; exact values are for who points at them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

SHOWN_CHARS_MAX = 30_000
UNITS = ((86_400 * 365, "y"), (86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def count(number: float) -> str:
    """1,234 becomes 1.2 k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 0.9995:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:.3g}"


def exact(number: float) -> str:
    """All of its digits, in threes."""
    return f"{number:,}"


def size(count_bytes: float) -> str:
    """Bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count_bytes) < 1000:
            return f"{count_bytes:.3g} {unit}"
        count_bytes /= 1000
    return f"{count_bytes:.3g} TB"


def duration(seconds: float) -> str:
    """From microseconds to years, in one unit."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds == 0:
        return "0 s"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    for length, unit in UNITS:
        if seconds >= length:
            number = seconds / length
            return (
                f"{number:.1f} {unit}" if number < 10 and unit != "min" else f"{number:.0f} {unit}"
            )
    return f"{seconds:.0f} s"


def moment(text: str | None) -> datetime | None:
    """The time that an answer names."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def age(text: str | None, now: datetime | None = None) -> str:
    """3 min ago, in 2 d, just now."""
    then = moment(text)
    if then is None:
        return "never"
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if abs(seconds) < 2:
        return "just now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def elapsed(text: str | None) -> str:
    """How long it has been so."""
    then = moment(text)
    seconds = (datetime.now(UTC) - then).total_seconds() if then else 0.0
    return duration(seconds) if seconds >= 1 else "a moment"


def at(text: str | None) -> str:
    """The moment itself, to the second."""
    then = moment(text)
    return f"{then.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if then else "never"


def share(part: float) -> str:
    """0.123 becomes 12 %."""
    percent = part * 100
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.1f} %"


def plural(number: int, one: str, many: str | None = None) -> str:
    """1 memory, 1.2 k memories."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def shortened(text: str, chars_max: int) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else line[: chars_max - 1].rstrip() + "…"


def cut(text: str, chars_max: int = SHOWN_CHARS_MAX) -> str:
    """As much of a text as a page should hold, and how much more there is."""
    more = len(text) - chars_max
    return text if more <= 0 else f"{text[:chars_max]}\n… and {more:,} more characters"


def as_json(value: Any) -> str:
    """A value as it would be written."""
    return cut(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def inline(value: Any, chars_max: int = 120) -> str:
    """A value in one line."""
    if isinstance(value, str):
        return shortened(value, chars_max)
    if isinstance(value, Mapping):
        pairs = (f"{key}: {inline(part, 40)}" for key, part in value.items())
        return shortened(" · ".join(pairs), chars_max)
    return shortened(json.dumps(value, ensure_ascii=False, default=str), chars_max)


def spoken(name: str) -> str:
    """tier_migration becomes Tier migration."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
