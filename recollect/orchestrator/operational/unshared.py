"""What waits to be given to others: bounded, the oldest first, and put back if that fails."""

from __future__ import annotations

from collections import deque

import msgspec

from recollect.orchestrator.operational.interface import Event
from recollect.orchestrator.operational.shared_log import Change

GIVEN_AT_ONCE = 500
BYTES_AT_ONCE = 262_144


class Batch(msgspec.Struct, frozen=True):
    """What is given in one step."""

    events: list[Event]
    changes: list[Change]


class Unshared:
    """Events in their order, and of metrics and tasks the last change. On the event loop only."""

    def __init__(self, events_max: int, changes_max: int) -> None:
        """What is beyond `events_max` would make room in Redis at once, so that it need not go."""
        self._events: deque[Event] = deque(maxlen=events_max)
        self._changes: dict[tuple[str, str], Change] = {}
        self._changes_max = changes_max

    def __len__(self) -> int:
        return len(self._events) + len(self._changes)

    def add_event(self, event: Event) -> None:
        self._events.append(event)

    def add_change(self, change: Change) -> None:
        place = change.kind, change.field
        self._changes.pop(place, None)
        self._changes[place] = change
        if len(self._changes) > self._changes_max:
            del self._changes[next(iter(self._changes))]

    def changed(self, kind: str, field: str) -> bool:
        """Whether a change of that one waits."""
        return (kind, field) in self._changes

    def take(self) -> Batch:
        """The next to be given, a bounded number of bytes."""
        batch = Batch([], [])
        room = BYTES_AT_ONCE
        while self._events and room > 0 and len(batch.events) < GIVEN_AT_ONCE:
            event = self._events.popleft()
            batch.events.append(event)
            room -= len(event.data)
        if self._events:
            # An event may be erased by a change: it is there before that.
            return batch
        while self._changes and room > 0 and len(batch.changes) < GIVEN_AT_ONCE:
            change = self._changes.pop(next(iter(self._changes)))
            batch.changes.append(change)
            room -= len(change.value)
        return batch

    def put_back(self, batch: Batch) -> None:
        """Keep for another time what could not be given, unless there is something newer."""
        events = [*batch.events, *self._events]
        self._events.clear()
        self._events.extend(events)
        newer, self._changes = self._changes, {}
        for change in (*batch.changes, *newer.values()):
            self.add_change(change)
