"""What a subscription asks next, and what an answer means to it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest

from recollect.client.following import WAIT_S, Follower
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.protocol.envelope import Reply, Request
from recollect.protocol.errors import ChangesGone, Overloaded, Unreachable
from recollect.protocol.operations import ReadChanges


class Scene:
    """A follower, and what it told of errors."""

    def __init__(self, after: int | None) -> None:
        self.noticed: list[str] = []
        self.follower = Follower(
            ReadChanges(after, namespace="user:a"),
            retry=Retry(backoff_ms=100, backoff_ms_max=400),
            server_clock=ServerClock(lambda: 0.0, lambda: 0.0),
            clock=lambda: 0.0,
            randomness=random.Random(1),
            notice=lambda operation, error: self.noticed.append(error.code),
            new_id=itertools.count(1).__next__,
        )

    def asked(self) -> dict[str, Any]:
        request = msgspec.msgpack.decode(self.follower.ask().frame, type=Request)
        body: dict[str, Any] = msgspec.msgpack.decode(request.body)
        return body

    def answer(self, next_seq: int, *seqs: int) -> float:
        body = {
            "status": "success",
            "changes": [{"seq": seq} for seq in seqs],
            "next_seq": next_seq,
            "seq": next_seq,
            "complete": True,
        }
        return self.follower.learn(Reply(1, 1, 0, msgspec.msgpack.encode(body)))


def test_it_goes_on_behind_what_it_was_told_and_what_was_passed_by() -> None:
    scene = Scene(7)
    assert scene.asked() == {
        "after_seq": 7,
        "limit": 500,
        "wait_s": WAIT_S,
        "namespace": "user:a",
    }
    scene.answer(12, 8, 9)
    follower = scene.follower
    assert follower.seq == 7
    assert [follower.take(), follower.seq] == [{"seq": 8}, 8]
    # Behind the last one that fitted there were others.
    assert [follower.take(), follower.seq] == [{"seq": 9}, 12]
    assert follower.take() is None
    assert scene.asked()["after_seq"] == 12
    scene.answer(15)
    assert (follower.seq, scene.asked()["after_seq"]) == (15, 15)


def test_without_a_number_it_asks_first_where_the_end_is() -> None:
    scene = Scene(None)
    before = scene.follower.seq
    assert before is None
    assert "after_seq" not in scene.asked() and scene.asked()["wait_s"] == 0.0
    scene.answer(41)
    assert (scene.follower.seq, scene.asked()["after_seq"]) == (41, 41)


def test_it_pauses_longer_and_longer_and_asks_the_same_again() -> None:
    scene = Scene(3)
    pauses = [scene.follower.learn(Unreachable("nobody")) for _ in range(8)]
    assert all(
        low <= pause <= 2 * low for low, pause in zip((0.05, 0.1, 0.2, 0.2), pauses, strict=False)
    )
    assert max(pauses) <= 0.4
    assert scene.asked()["after_seq"] == 3
    assert scene.noticed == ["unreachable"] * 8
    assert scene.follower.learn(Overloaded("full", retry_after_ms=5_000)) == 5.0
    scene.answer(4, 4)
    assert scene.follower.learn(Unreachable("nobody")) <= 0.1


def test_what_no_retry_can_mend_is_raised() -> None:
    with pytest.raises(ChangesGone):
        Scene(3).follower.learn(ChangesGone("trimmed"))
