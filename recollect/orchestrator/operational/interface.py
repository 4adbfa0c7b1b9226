"""What operational memory offers: to note what happens, and to see the last of it.

It lives on the event loop. Whatever is noted is there at once for whoever asks this orchestrator;
where several share it, `refresh` brings what the others noted until then. Nothing here waits for a
disk: a critical event was written to storage before it comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

import msgspec

Readable = Callable[[str], bool]
"""Whether a reader may see, and asks for, what belongs to a namespace."""
MetricValue = float | int | str | bool


def bytes_of(text: str) -> int:
    """The bytes of a text; most are ASCII, of which the length tells them."""
    return len(text) if text.isascii() else len(text.encode())


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One thing that happened."""

    id: str
    """Of a critical one: that of its memory."""
    at_us: int
    namespace: str
    category: str
    data: str
    """As JSON."""
    critical: bool
    author: str
    task_id: str | None = None
    session_id: str | None = None
    mark: str | None = None
    """The same in an event that was sent twice by one key, whoever took it."""


class Metric(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The latest value of a metric."""

    namespace: str
    key: str
    value: MetricValue
    at_us: int
    author: str


class ActiveTask(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a task is at."""

    namespace: str
    task_id: str
    state: str
    """As JSON."""
    since_us: int
    at_us: int
    author: str


class Counts(msgspec.Struct, frozen=True):
    """How many events there are of what a reader may see."""

    kept: int
    critical: int
    by_category: dict[str, int]


class OperationalMemory(Protocol):
    """The last events, the latest metrics and the active tasks, all bounded."""

    kept_in: str
    """`process` or `redis`."""
    shared: bool
    """Whether others may have noted something, so that `refresh` is worth its wait."""

    def degraded(self) -> str | None:
        """What is wrong with it, if anything is; it goes on all the same."""
        ...

    def push(self, event: Event) -> Event:
        """Note an event; the oldest makes room.

        Returns it, or the one that is there already of the same mark.
        """
        ...

    def discard(self, event_ids: Collection[str]) -> None:
        """Forget events whose memories are gone."""
        ...

    def set_metric(self, metric: Metric) -> None:
        """Set a metric; the one set longest ago makes room."""
        ...

    def set_task(self, task: ActiveTask) -> None:
        """Say what a task is at; one that was active already keeps its beginning."""
        ...

    def end_task(self, namespace: str, task_id: str) -> None:
        """Take a task from the list, if it is there."""
        ...

    async def refresh(self) -> None:
        """Bring what others noted until now, or do without it in bounded time; never fails."""
        ...

    def events(self, readable: Readable, count: int, category: str | None = None) -> list[Event]:
        """The last events that a reader may see, the newest first."""
        ...

    def critical_ids(self, readable: Readable) -> list[str]:
        """The ids of all critical events that a reader may see."""
        ...

    def metrics(self, readable: Readable, keys: Collection[str] | None = None) -> list[Metric]:
        """The metrics that a reader may see, by namespace and key."""
        ...

    def tasks(self, readable: Readable, limit: int) -> list[ActiveTask]:
        """The active tasks that a reader may see, the last changed first."""
        ...

    def counts(self, readable: Readable) -> Counts:
        """How many events a reader may see."""
        ...

    async def start(self, store_id: str, critical: Iterable[Event]) -> None:
        """Take up what was there before, the last critical events of the storage among it.

        `store_id` tells this store from others that share theirs in the same place.
        """
        ...

    async def stop(self) -> None:
        """Hand on what is not shared yet, in bounded time."""
        ...
