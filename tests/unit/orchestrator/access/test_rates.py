"""Rates: how many requests pass, by a clock that the test moves."""

from __future__ import annotations

import pytest

from recollect.orchestrator.access import rates
from recollect.orchestrator.access.grants import NOTHING
from recollect.orchestrator.access.identities import LOCAL, Identity
from recollect.orchestrator.access.rates import Rates
from recollect.protocol.errors import RateLimited


class Moment:
    """A monotonic clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def identity(name: str, requests_per_s: float | None) -> Identity:
    return Identity(name, NOTHING, requests_per_s=requests_per_s)


def passed(limits: Rates, who: Identity, tries: int) -> int:
    count = 0
    for _ in range(tries):
        try:
            limits.take(who)
            count += 1
        except RateLimited:
            pass
    return count


def test_a_burst_of_one_second_passes_and_then_as_many_as_time_brings() -> None:
    clock = Moment()
    limits, alice = Rates(clock), identity("alice", 10.0)
    assert passed(limits, alice, 50) == 10
    clock.now_s += 0.5
    assert passed(limits, alice, 50) == 5
    clock.now_s += 3600
    assert passed(limits, alice, 50) == 10


def test_a_refusal_says_when_the_next_one_passes() -> None:
    clock = Moment()
    limits, slow = Rates(clock), identity("slow", 0.5)
    limits.take(slow)
    with pytest.raises(RateLimited) as caught:
        limits.take(slow)
    assert caught.value.details == {"limit": "requests_per_s", "retry_after_ms": 2000}
    clock.now_s += 1.999
    with pytest.raises(RateLimited):
        limits.take(slow)
    clock.now_s += 0.001
    limits.take(slow)


def test_each_identity_has_its_own_and_who_has_no_bound_has_none() -> None:
    limits = Rates(Moment())
    assert passed(limits, identity("alice", 2.0), 5) == 2
    assert passed(limits, identity("bob", 3.0), 5) == 3
    assert passed(limits, identity("carol", None), 500) == 500
    assert passed(limits, LOCAL, 500) == 500


def test_the_rate_in_force_is_the_one_that_the_identity_has_now() -> None:
    limits = Rates(Moment())
    assert passed(limits, identity("alice", 10.0), 4) == 4
    assert passed(limits, identity("alice", 2.0), 10) == 2


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "BUCKETS_MAX", 3)
    limits = Rates(Moment())
    for number in range(10):
        limits.take(identity(f"agent-{number}", 1.0))
    assert len(limits._buckets) <= 3
