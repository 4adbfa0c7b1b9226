"""The live end of the feed: what it holds, and whom it wakes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from recollect.orchestrator.calls import Call
from recollect.orchestrator.feed.live import LiveFeed
from recollect.orchestrator.feed.tail import Tail
from recollect.orchestrator.feed.waiting import Waiter, WaitingRoom
from recollect.orchestrator.feed.wanted import Wanted
from recollect.orchestrator.storage.interface import Change, Committed
from recollect.protocol.errors import Overloaded

CALL = Call("read_changes", 0, 0, "local")
EVERYTHING = Wanted(None)


def change(seq: int, namespace: str | None = "user:a", **fields: Any) -> Change:
    given = {"operation": "put", "agent": None, "outcome": None} | fields
    return Change(
        seq, 1, "local", given["agent"], given["operation"], "x", namespace, None, 1,
        None, None, None, outcome=given["outcome"],
    )  # fmt: skip


def changes(first: int, last: int) -> list[Change]:
    return [change(seq) for seq in range(first, last + 1)]


def test_a_tail_knows_how_far_back_it_goes() -> None:
    tail = Tail(10, changes_max=4)
    assert tail.covers(10) and not tail.covers(9)
    tail.extend(changes(11, 13), 13)
    assert tail.covers(10)
    assert [c.seq for c in tail.since(11)] == [12, 13]
    tail.extend(changes(14, 15), 15)
    assert not tail.covers(10) and tail.covers(11)
    assert [c.seq for c in tail.since(11)] == [12, 13, 14, 15]
    tail.extend(changes(16, 25), 25)
    assert not tail.covers(20) and tail.covers(21)
    assert [c.seq for c in tail.since(21)] == [22, 23, 24, 25]
    tail.restart(30)
    assert tail.covers(30) and tail.since(30) == []


class Quiet:
    """A storage that nobody else writes to."""

    inline_reads = True
    committed_seq = 0

    def watch(self, observer: Any) -> None:
        """Nothing is told."""


async def woken_by(*told: Change, **wanted: Any) -> bool:
    room = WaitingRoom(10)
    waiter = Waiter(CALL, Wanted(**wanted), after=5)
    waiting = asyncio.create_task(room.wait(waiter, 60.0))
    await asyncio.sleep(0)
    room.offer(told)
    woken = waiter.future.done()
    waiter.wake(False)
    await waiting
    assert not room
    return woken


@pytest.mark.parametrize(
    ("wanted", "told", "woken"),
    [
        ({"homes": None}, change(6), True),
        ({"homes": None}, change(6, None), True),
        ({"homes": None}, change(5), False),
        ({"homes": None}, change(6, outcome="denied"), False),
        ({"homes": ("user",)}, change(6, "user:a:b"), True),
        ({"homes": ("user:a",)}, change(6, "user:a:b"), True),
        ({"homes": ("user:a",)}, change(6, "user:ab"), False),
        ({"homes": ("user:a",)}, change(6, None), False),
        ({"homes": ("user:a", "app:x")}, change(6, "app:x"), True),
        ({"homes": ()}, change(6), False),
        ({"homes": None, "operations": frozenset(["add"])}, change(6), False),
        ({"homes": None, "operations": frozenset(["add", "put"])}, change(6), True),
        ({"homes": ("user:a",), "agent": "b"}, change(6, agent="a"), False),
    ],
)
def test_one_who_waits_is_woken_by_what_they_want(
    wanted: dict[str, Any], told: Change, woken: bool
) -> None:
    assert asyncio.run(woken_by(told, **wanted)) is woken


def test_many_commits_in_a_row_wake_once_and_are_told_together() -> None:
    async def scene() -> None:
        room = WaitingRoom(10)
        feed = LiveFeed(Quiet(), room)  # type: ignore[arg-type]
        waiting = [
            asyncio.create_task(feed.next_page(CALL, 0, EVERYTHING, 100, 60.0)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        for seq in range(1, 6):
            feed.committed(Committed(seq - 1, seq, [change(seq)]))
        for page in await asyncio.gather(*waiting):
            assert [c.seq for c in page.changes] == [1, 2, 3, 4, 5]
            assert (page.next_seq, page.complete) == (5, True)
        assert room.count == 0 and not room

    asyncio.run(scene())


def test_no_more_may_wait_than_is_set() -> None:
    room = WaitingRoom(2)
    room.enter()
    room.enter()
    with pytest.raises(Overloaded) as caught:
        room.enter()
    assert caught.value.details["limit"] == "network.waiting_max"
    room.leave()
    room.enter()
