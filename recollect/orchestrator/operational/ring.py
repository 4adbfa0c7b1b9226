"""The last events in their order, bounded in number and in bytes; the oldest make room.

The order is that in which they came, because clocks may jump. Only what comes a little late, from
the disk or from another orchestrator, takes the place that its time gives it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from operator import attrgetter

from recollect.orchestrator.operational.interface import Counts, Event, Readable, bytes_of

LATE_US = 5_000_000
"""What is older than its predecessor by more than this is not late: a clock was set."""
_at = attrgetter("at_us")


class EventRing:
    """Events, each once. Touched only on the event loop."""

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._ids: set[str] = set()
        self._marks: dict[str, Event] = {}

    def __len__(self) -> int:
        return len(self._events)

    def room(self) -> int:
        """How many events of the size that they have now are kept."""
        nearly_full = self._bytes > 0.9 * self._bytes_max
        return max(1, len(self._events)) if nearly_full else self._events_max

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def push(self, event: Event) -> bool:
        """Take an event; False if it is there already."""
        if not self._is_new(event):
            return False
        events = self._events
        if events and 0 < events[-1].at_us - event.at_us <= LATE_US:
            self._take_late([event])
        else:
            self._append(event)
        self._trim()
        return True

    def same_as(self, event: Event) -> Event:
        """The one that is here of the mark of an event; else that event."""
        return self._marks.get(event.mark, event) if event.mark is not None else event

    def extend(self, given: Iterable[Event]) -> None:
        """Take events of others, which may have come a little late."""
        if new := self._new_of(given):
            self._take_late(new)
            self._trim()

    def refill(self, given: Iterable[Event]) -> None:
        """Take up events from before the start: all of them by their times."""
        everything = [*self._events, *self._new_of(given)]
        everything.sort(key=_at)
        self._clear()
        for event in everything:
            self._append(event)
        self._trim()

    def discard(self, event_ids: Collection[str]) -> None:
        """Take out events by their ids, where they are here."""
        gone = self._ids.intersection(event_ids)
        if gone:
            kept = [event for event in self._events if event.id not in gone]
            self._clear()
            for event in kept:
                self._append(event)

    def latest(self, readable: Readable, count: int, category: str | None) -> list[Event]:
        """The newest events that a reader may see, the newest first."""
        found: list[Event] = []
        if count < 1:
            return found
        for event in reversed(self._events):
            if (category is None or event.category == category) and readable(event.namespace):
                found.append(event)
                if len(found) == count:
                    break
        return found

    def counts(self, readable: Readable) -> Counts:
        """How many events a reader may see."""
        seen = [event for event in self._events if readable(event.namespace)]
        by_category = Counter(event.category for event in seen)
        return Counts(len(seen), sum(event.critical for event in seen), dict(by_category))

    def _is_new(self, event: Event) -> bool:
        return event.id not in self._ids and event.mark not in self._marks

    def _new_of(self, given: Iterable[Event]) -> list[Event]:
        """Those that are not here yet, each once."""
        new: dict[str, Event] = {}
        for event in given:
            if self._is_new(event):
                new.setdefault(event.mark or event.id, event)
        return list(new.values())

    def _take_late(self, new: list[Event]) -> None:
        """Merge events into the end: a few are taken off and come back in the order of time."""
        events = self._events
        first_us = min(event.at_us for event in new)
        tail = list(new)
        later: list[Event] = []
        while events and 0 < events[-1].at_us - first_us <= LATE_US:
            later.append(self._take_last())
        if later:
            # Equal times keep their order: what was here first stays first.
            tail = [*reversed(later), *new]
            tail.sort(key=_at)
        for event in tail:
            self._append(event)

    def _append(self, event: Event) -> None:
        self._events.append(event)
        self._ids.add(event.id)
        if event.mark is not None:
            self._marks[event.mark] = event
        self._bytes += bytes_of(event.data)

    def _take_last(self) -> Event:
        event = self._events.pop()
        self._forget(event)
        return event

    def _trim(self) -> None:
        events = self._events
        while len(events) > self._events_max or self._bytes > self._bytes_max:
            self._forget(events.popleft())

    def _forget(self, event: Event) -> None:
        self._ids.discard(event.id)
        if event.mark is not None:
            self._marks.pop(event.mark, None)
        self._bytes -= bytes_of(event.data)

    def _clear(self) -> None:
        self._events.clear()
        self._ids.clear()
        self._marks.clear()
        self._bytes = 0
