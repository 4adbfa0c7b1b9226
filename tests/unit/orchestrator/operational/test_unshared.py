"""What waits for Redis: bounded, in order, and not lost when it could not be given."""

from __future__ import annotations

from recollect.orchestrator.operational.interface import Event
from recollect.orchestrator.operational.shared_log import GONE, Change
from recollect.orchestrator.operational.unshared import BYTES_AT_ONCE, Unshared

ROOM = 10 * BYTES_AT_ONCE


def event(name: str, data: str = "null") -> Event:
    return Event(name, 1, "app:a", "c", data, False, "a")


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


def test_what_could_not_be_given_comes_first_the_next_time() -> None:
    waiting = Unshared(10, 10, ROOM)
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
    waiting = Unshared(3, 2, ROOM)
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
    waiting = Unshared(10, 10, ROOM)
    for name in "abc":
        waiting.add_event(event(name, "x" * (BYTES_AT_ONCE - 1)))
    waiting.add_change(Change("x", "c", GONE))
    first, second = waiting.take(), waiting.take()
    assert (ids(first.events), first.changes) == (["a", "b"], [])
    assert (ids(second.events), [c.field for c in second.changes]) == (["c"], ["c"])
    assert not waiting


def test_what_waits_is_bounded_in_bytes() -> None:
    waiting = Unshared(10, 10, 100)
    for name in "abc":
        waiting.add_event(event(name, "x" * 40))
        waiting.add_change(Change("t", name, "x" * 80))
    batch = waiting.take()
    assert ids(batch.events) == ["b", "c"]
    assert [change.field for change in batch.changes] == ["b", "c"]
    waiting.add_event(event("d", "é" * 20))
    waiting.add_change(Change("t", "d", "é" * 40))
    waiting.put_back(batch)
    again = waiting.take()
    assert ids(again.events) == ["c", "d"]
    assert [change.field for change in again.changes] == ["c", "d"]


def test_no_flood_of_metrics_keeps_back_what_is_to_be_erased() -> None:
    waiting = Unshared(10, 2, ROOM)
    waiting.add_change(Change("x", "secret", GONE))
    for name in "abc":
        waiting.add_change(Change("m", name, "1"))
    assert [change.field for change in waiting.take().changes] == ["secret", "b", "c"]
