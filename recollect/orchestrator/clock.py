"""Time and ids, passed in wherever they are needed so that a test can hold them still."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

from recollect.protocol.errors import InvalidArgument

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Wall time in microseconds since 1970."""

    def now_us(self) -> int: ...


class SystemClock:
    """The machine's own clock."""

    def now_us(self) -> int:
        return time.time_ns() // 1000


class IdSource:
    """Makes UUIDs of version 7, which sort by the time of their making."""

    def __init__(self, clock: Clock, randomness: random.Random | None = None) -> None:
        self._clock = clock
        self._random_bits = (randomness or random.Random()).getrandbits
        self._last_ms = 0
        self._counter = 0

    def new(self) -> str:
        """A new id, greater than every id this source made before."""
        now_ms = self._clock.now_us() // 1000
        noise = self._random_bits(64)
        if now_ms <= self._last_ms:
            # Within one millisecond, or when the clock steps back, the counter keeps the order.
            self._counter += 1
            if self._counter > 0xFFF:
                self._last_ms += 1
                self._counter = 0
        else:
            self._last_ms = now_ms
            self._counter = noise >> 55 & 0x7F
        number = self._last_ms << 80 | 0x7 << 76 | self._counter << 64
        number |= 0b10 << 62 | noise & (1 << 62) - 1
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@lru_cache(maxsize=8192)
def _second_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def to_iso(moment_us: int) -> str:
    """A moment as ISO 8601 text in UTC."""
    second, fraction_us = divmod(moment_us, 1_000_000)
    return f"{_second_text(second)}.{fraction_us:06d}Z"


def to_iso_or_none(moment_us: int | None) -> str | None:
    """As `to_iso`, and None for none."""
    return None if moment_us is None else to_iso(moment_us)


def parse_moment(field: str, moment: str | float | None) -> int | None:
    """Microseconds since 1970 from ISO 8601 text or seconds; text without a zone is UTC."""
    if moment is None:
        return None
    try:
        if isinstance(moment, str):
            parsed = datetime.fromisoformat(moment)
            if parsed.tzinfo is None:
                parsed = parsed.replace(tzinfo=UTC)
        else:
            parsed = datetime.fromtimestamp(moment, UTC)
        # A zone may carry it out of the years 1 to 9999, which could not be shown again.
        parsed = parsed.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(
            f"{field} is not a time: give ISO 8601 text such as 2026-01-31T12:00:00Z, "
            "or seconds since 1970.",
            field=field,
        ) from None
    return (parsed - EPOCH) // timedelta(microseconds=1)
