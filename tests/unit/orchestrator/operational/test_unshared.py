"""What waits for Redis: bounded, in order, and not lost when it could not be given."""

from __future__ import annotations

from recollect.orchestrator.operational.interface import Event
from recollect.orchestrator.operational.shared_log import GONE, Change
from recollect.orchestrator.operational.unshared import BYTES_AT_ONCE, Unshared


def event(name: str, data: str = "null") -> Event:
    return Event(name, 1, "app:a", "c", data, False, "a")


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


def test_what_could_not_be_given_comes_first_the_next_time() -> None:
    waiting = Unshared(10, 10)
    for name in "ab":
        waiting.add_event(event(name))
    waiting.add_change(Change("m", "queue", "1"))
    waiting.add_change(Change("m", "other", "1"))
    batch = waiting.take()
    assert not waiting
    waiting.add_event(event("c"))
    waiting.add_change(Change("m", "queue", "2"))
    waiting.put_back(batch)
    again = waiting.take()
    assert ids(again.events) == ["a", "b", "c"]
    assert {change.field: change.value for change in again.changes} == {"queue": "2", "other": "1"}


def test_the_oldest_make_room_while_redis_is_away() -> None:
    waiting = Unshared(3, 2)
    for name in "abcd":
        waiting.add_event(event(name))
        waiting.add_change(Change("m", name, "1"))
    batch = waiting.take()
    assert ids(batch.events) == ["b", "c", "d"]
    assert [change.field for change in batch.changes] == ["c", "d"]
    waiting.add_event(event("e"))
    waiting.put_back(batch)
    assert ids(waiting.take().events) == ["c", "d", "e"]


def test_no_more_than_so_many_bytes_go_at_once_and_erasures_go_last() -> None:
    waiting = Unshared(10, 10)
    for name in "abc":
        waiting.add_event(event(name, "x" * (BYTES_AT_ONCE - 1)))
    waiting.add_change(Change("x", "c", GONE))
    first, second = waiting.take(), waiting.take()
    assert (ids(first.events), first.changes) == (["a", "b"], [])
    assert (ids(second.events), [c.field for c in second.changes]) == (["c"], ["c"])
    assert not waiting
