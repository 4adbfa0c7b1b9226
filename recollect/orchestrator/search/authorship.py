"""Who said a thing and when: from a memory's own columns, or from what its metadata says.

An agent often stores what others said, so a speaker or a date in the metadata goes before the agent
that wrote it down and the moment at which it did.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.search.calendar_words import month_number

AUTHOR_KEYS = ("speaker", "author", "sender", "from", "user", "role")
MOMENT_KEYS = ("date", "datetime", "date_time", "timestamp", "time", "at", "when", "occurred_at")
AUTHOR_CHARS_MAX = 64
_day_first = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?([a-z]{3,9})\.?,?\s+(\d{4})\b")
_month_first = re.compile(r"\b([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b")


def author_of(created_by: str | None, metadata: dict[str, Any]) -> str | None:
    """The person or agent whose words a memory holds."""
    if not metadata:
        return created_by
    for key in AUTHOR_KEYS:
        named = metadata.get(key)
        if isinstance(named, str) and 0 < len(named) <= AUTHOR_CHARS_MAX:
            return named
    return created_by


def moment_us_of(row: MemoryRow, metadata: dict[str, Any]) -> int:
    """When it happened or was said, as far as the memory knows."""
    if row.valid_from_us is not None:
        return row.valid_from_us
    for key in MOMENT_KEYS if metadata else ():
        if key in metadata and (moment_us := read_moment_us(metadata[key])) is not None:
            return moment_us
    return row.created_us


def metadata_of(row: MemoryRow) -> dict[str, Any]:
    """A memory's metadata as an object."""
    if row.metadata == "{}":
        return {}
    decoded: dict[str, Any] = decode_json(row.metadata)
    return decoded


def read_moment_us(value: Any) -> int | None:
    """A moment as people and programs write it: ISO 8601, Unix time, or a day with its month."""
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float):
            # Seconds have ten digits in our time, milliseconds thirteen.
            seconds = value / 1000 if value > 1e11 else value
            return int(seconds * 1_000_000) if 0 < seconds < 1e10 else None
        if isinstance(value, str) and len(value) <= AUTHOR_CHARS_MAX:
            return _read_text(value.strip())
    except (ValueError, OverflowError):
        pass
    return None


def _read_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        lowered = text.lower()
        if found := _day_first.search(lowered):
            day, month, year = found.group(1), found.group(2), found.group(3)
        elif found := _month_first.search(lowered):
            month, day, year = found.group(1), found.group(2), found.group(3)
        else:
            return None
        number = month_number(month)
        if number is None:
            return None
        moment = datetime(int(year), number, int(day))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)
