"""What waits to be given to others: bounded, the oldest first, and put back if that fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from recollect.orchestrator.operational.interface import Event, bytes_of
from recollect.orchestrator.operational.latest import Latest
from recollect.orchestrator.operational.shared_log import ERASED, Change

GIVEN_AT_ONCE = 500
BYTES_AT_ONCE = 262_144


class Batch(msgspec.Struct, frozen=True):
    """What is given in one step."""

    events: list[Event]
    changes: list[Change]


class Unshared:
    """Events in their order, and of metrics and tasks the last change. On the event loop only."""

    def __init__(self, events_max: int, changes_max: int, bytes_max: int) -> None:
        """What is beyond `events_max` or `bytes_max`, which events have and changes likewise, would
        make room in Redis at once, so that it need not go."""
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._events: deque[Event] = deque()
        self._events_bytes = 0
        # A state that lies as text in JSON may have twice its bytes.
        self._changes: Latest[Change] = Latest(changes_max, 2 * bytes_max, _size_of)
        # Apart from those, so that no flood of metrics keeps back what is to be erased.
        self._erased: Latest[Change] = Latest(events_max)

    def __len__(self) -> int:
        return len(self._events) + len(self._changes) + len(self._erased)

    def add_event(self, event: Event) -> None:
        self._events.append(event)
        self._events_bytes += bytes_of(event.data)
        while len(self._events) > self._events_max or self._events_bytes > self._bytes_max:
            self._take_event()

    def set_events(self, events: Iterable[Event]) -> None:
        """Let these wait, instead of those that did."""
        self._events.clear()
        self._events_bytes = 0
        for event in events:
            self.add_event(event)

    def add_change(self, change: Change) -> None:
        self._home(change).set((change.kind, change.field), change)

    def changed(self, kind: str, field: str) -> bool:
        """Whether a change of that metric or task waits."""
        return self._changes.get((kind, field)) is not None

    def take(self) -> Batch:
        """The next to be given, a bounded number of bytes."""
        batch = Batch([], [])
        room = BYTES_AT_ONCE
        while self._events and room > 0 and len(batch.events) < GIVEN_AT_ONCE:
            event = self._take_event()
            batch.events.append(event)
            room -= bytes_of(event.data)
        if self._events:
            # An event may be erased by a change: it is there before that.
            return batch
        for home in (self._erased, self._changes):
            while len(home) and room > 0 and len(batch.changes) < GIVEN_AT_ONCE:
                change = home.take()
                batch.changes.append(change)
                room -= _size_of(change)
        return batch

    def put_back(self, batch: Batch) -> None:
        """Keep for another time what could not be given, unless there is something newer."""
        for event in reversed(batch.events):
            size = bytes_of(event.data)
            full = len(self._events) >= self._events_max
            if full or self._events_bytes + size > self._bytes_max:
                break
            self._events.appendleft(event)
            self._events_bytes += size
        for change in reversed(batch.changes):
            self._home(change).put_back((change.kind, change.field), change)

    def _home(self, change: Change) -> Latest[Change]:
        return self._erased if change.kind == ERASED else self._changes

    def _take_event(self) -> Event:
        event = self._events.popleft()
        self._events_bytes -= bytes_of(event.data)
        return event


def _size_of(change: Change) -> int:
    return bytes_of(change.value)
