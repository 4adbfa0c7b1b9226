"""What the full-text index is fed for one memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from recollect.orchestrator.search.calendar_words import MONTHS, WEEKDAYS
from recollect.orchestrator.search.lexical.spelling import has_parts, spelled_out

SPELLED_CHARS_MAX = 65_536
"""How much of a long content is searched for odd words. All of its plain words are indexed."""
METADATA_CHARS_MAX = 4096
METADATA_VALUES_MAX = 128
METADATA_DEPTH_MAX = 6

DAY_US = 86_400_000_000
EPOCH = date(1970, 1, 1)


def lexical_text(
    content: str,
    *,
    key: str | None = None,
    tags: Sequence[str] = (),
    metadata: dict[str, Any] | None = None,
    author: str | None = None,
    moment_us: int | None = None,
) -> str:
    """The words by which a memory is found: its content, what surrounds it, and its day."""
    parts = [content]
    # Most memories are plain words; they pass with two tests.
    if not content.isascii() or has_parts(content):
        parts += spelled_out(content[:SPELLED_CHARS_MAX])
    around = [] if key is None else [key]
    around += tags
    if metadata:
        around += _scalars(metadata)
    if author is not None:
        around.append(author)
    if around:
        beside = " ".join(around)
        parts.append(beside)
        parts += _spelled_beside(beside)
    if moment_us is not None:
        parts.append(spoken_day(moment_us // DAY_US))
    return " ".join(parts)


@lru_cache(maxsize=1024)
def _spelled_beside(beside: str) -> tuple[str, ...]:
    """The odd words of what surrounds a content, which is the same for many memories."""
    plain = beside.isascii() and not has_parts(beside)
    return () if plain else tuple(spelled_out(beside))


def forget_surroundings() -> None:
    """Forget what was remembered of the surroundings of memories."""
    _spelled_beside.cache_clear()


@lru_cache(maxsize=1024)
def spoken_day(day: int) -> str:
    """A day, counted from 1970, as people write it: 8 May 2023 Monday."""
    try:
        on = EPOCH + timedelta(days=day)
    except OverflowError:
        return ""
    return f"{on.day} {MONTHS[on.month - 1]} {on.year} {WEEKDAYS[on.weekday()]}"


def _scalars(metadata: dict[str, Any]) -> Iterator[str]:
    """The texts and numbers in the metadata, up to a bound."""
    chars_left, values_left = METADATA_CHARS_MAX, METADATA_VALUES_MAX
    waiting: list[tuple[Any, int]] = [(metadata, 0)]
    while waiting and chars_left > 0 and values_left > 0:
        value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth < METADATA_DEPTH_MAX:
                inner = list(value.values() if isinstance(value, dict) else value)
                waiting += [(item, depth + 1) for item in reversed(inner[:METADATA_VALUES_MAX])]
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        text = str(value)[:chars_left]
        chars_left -= len(text) + 1
        values_left -= 1
        yield text
