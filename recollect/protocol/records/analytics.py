"""The shapes of what is said about the store as a whole."""

from __future__ import annotations

from typing import TypedDict


class DayOfGrowth(TypedDict):
    """What was made in one day, in UTC, by the tier in which it is now."""

    day: str
    created: int
    short: int
    medium: int
    long: int


class MemoryUse(TypedDict):
    """A memory and how it is used; of its content only the beginning."""

    memory_id: str
    namespace: str
    memory_type: str
    memory_tier: str
    content: str
    importance: float
    strength: float
    access_count: int
    last_accessed_at: str
    fades_at: str


class FadingDay(TypedDict):
    day: str
    count: int


class FadingSoon(TypedDict):
    """What will have faded within a week unless it is used."""

    count: int
    faded: int
    """What has faded already, and waits to be moved or archived."""
    complete: bool
    """Whether both were counted to the end."""
    by_day: list[FadingDay]
    memories: list[MemoryUse]
    """The first of them."""


class Analytics(TypedDict):
    status: str
    at: str
    namespace: str | None
    examined: int
    """How many memories were looked at for growth, use and counts: the newest."""
    sampled: bool
    """Whether there are older ones, which were not looked at."""
    examined_since: str | None
    """When the oldest that was looked at was made."""
    growth: list[DayOfGrowth]
    """Day by day, also the days on which nothing was made; and what is gone since counts as well,
    unless it was purged."""
    most_used: list[MemoryUse]
    least_used: list[MemoryUse]
    fading: FadingSoon
    by_type: dict[str, int]
    """The most frequent; the same holds of the next three."""
    by_tier: dict[str, int]
    by_collection: dict[str, int]
    by_agent: dict[str, int]
