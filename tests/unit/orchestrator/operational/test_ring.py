"""The ring of events: in order, each once, and within its bounds."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.operational.interface import Event
from recollect.orchestrator.operational.ring import LATE_US, EventRing

DAY_US = 86_400_000_000


def event(name: str, at_us: int, **given: Any) -> Event:
    fields: dict[str, Any] = {"namespace": "app:a", "data": "null", "critical": False}
    return Event(id=name, at_us=at_us, category=name, author="a", **{**fields, **given})


def names(ring: EventRing) -> str:
    return "".join(event.id for event in ring)


def test_what_comes_a_little_late_takes_its_place() -> None:
    ring = EventRing(10, 1000)
    for name, at_us in (("a", 10), ("c", 30), ("d", 40)):
        ring.push(event(name, at_us))
    ring.push(event("b", 20))
    assert names(ring) == "abcd"
    ring.extend([event("x", 25), event("y", 35), event("z", 50)])
    assert names(ring) == "abxcydz"


def test_equal_times_stay_in_the_order_of_their_coming() -> None:
    ring = EventRing(10, 1000)
    for name in "abc":
        ring.push(event(name, 7))
    ring.extend([event("d", 7), event("e", 7)])
    assert names(ring) == "abcde"


def test_a_clock_that_was_set_back_makes_nothing_older() -> None:
    ring = EventRing(3, 1000)
    for name in "abc":
        ring.push(event(name, DAY_US))
    ring.push(event("d", 1))
    ring.push(event("e", DAY_US - LATE_US - 1))
    ring.extend([event("f", 2)])
    assert names(ring) == "def"


def test_each_event_is_there_once_by_its_id_and_by_its_mark() -> None:
    ring = EventRing(10, 1000)
    assert ring.push(event("a", 1, mark="k"))
    assert not ring.push(event("a", 1))
    assert not ring.push(event("b", 2, mark="k"))
    ring.extend([event("a", 1), event("c", 3), event("c", 3), event("d", 4, mark="k")])
    assert names(ring) == "ac"
    ring.discard(["a", "never there"])
    assert ring.push(event("b", 5, mark="k"))
    assert names(ring) == "cb"


def test_bytes_are_bounded_as_well_and_told_as_room() -> None:
    ring = EventRing(100, 50)
    assert ring.room() == 100
    for number in range(20):
        ring.push(event(f"{number:02}", number, data="x" * 10))
    assert names(ring) == "1516171819"
    assert ring.room() == 5
    ring.push(event("big", 30, data="x" * 50))
    assert names(ring) == "big"
    ring.discard(["big"])
    assert ring.room() == 100


def test_what_is_taken_up_at_the_start_is_sorted_by_time() -> None:
    ring = EventRing(4, 1000)
    ring.push(event("d", DAY_US))
    ring.refill([event("c", 3), event("a", 1), event("d", DAY_US), event("b", 2), event("0", 0)])
    assert names(ring) == "abcd"


def test_bytes_are_counted_and_not_characters() -> None:
    ring = EventRing(10, 100)
    for at_us, name in enumerate("abc"):
        ring.push(event(name, at_us, data="é" * 20))
    assert names(ring) == "bc"
