"""Time and ids, passed in wherever they are needed so that a test can hold them still."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Protocol

import structlog

from recollect.protocol.errors import InvalidArgument

log = structlog.get_logger()

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# It goes on while the machine sleeps, where there is such a clock.
STEADY_NS = partial(time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
FOLLOW_INTERVAL_S = 1.0
SLEW_NS = 500_000  # a second: time never goes back by more than this, and never stands still
JUMP_NS = 3_000_000_000


class Clock(Protocol):
    """Wall time in microseconds since 1970."""

    def now_us(self) -> int: ...


class SystemClock:
    """The machine's clock as it was at the start, and what has passed since by a clock that nobody
    can set.

    So whatever becomes of the wall clock meanwhile, nothing fades, expires or is late by it. Where
    the two drift apart by little, this one follows, slowly. A jump it does not follow: which of
    them is right cannot be known, and at the next start the wall clock is believed again.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = STEADY_NS,
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._offset_ns = wall_ns() - steady_ns()
        self._ahead_ns = 0
        self._jumped = False

    def now_us(self) -> int:
        return (self._steady_ns() + self._offset_ns) // 1000

    @property
    def offset_s(self) -> float:
        """How far the wall clock was ahead when that was looked at last; negative if behind."""
        return self._ahead_ns / 1e9

    def follow(self) -> None:
        """Look at the wall clock and come a little nearer to it. To be called every second."""
        self._ahead_ns = self._wall_ns() - self._steady_ns() - self._offset_ns
        jumped = abs(self._ahead_ns) > JUMP_NS
        if jumped != self._jumped:
            self._jumped = jumped
            log.warning(
                "The wall clock has jumped; that is not followed until the next start."
                if jumped
                else "The wall clock is where it should be again.",
                action="clock",
                offset_s=round(self.offset_s, 3),
            )
        if not jumped:
            self._offset_ns += max(-SLEW_NS, min(SLEW_NS, self._ahead_ns))


def offset_s_of(clock: Clock) -> float:
    """How far the wall clock is ahead of a clock."""
    return clock.offset_s if isinstance(clock, SystemClock) else 0.0


async def keep_following(clock: Clock) -> None:
    """Let a clock follow the wall clock for as long as this runs."""
    while isinstance(clock, SystemClock):
        clock.follow()
        await asyncio.sleep(FOLLOW_INTERVAL_S)


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
