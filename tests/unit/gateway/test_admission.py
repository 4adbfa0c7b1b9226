"""So many at once, and so often each."""

from __future__ import annotations

import pytest

from recollect.gateway.admission import CALLERS_MAX, Admission, Rates
from recollect.protocol.errors import Overloaded, RateLimited


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_caller_has_so_many_a_second_and_does_not_spend_those_of_others() -> None:
    clock = Clock()
    rates = Rates(2.0, clock)
    rates.take("a")
    rates.take("a")
    with pytest.raises(RateLimited) as refused:
        rates.take("a")
    assert refused.value.details["retry_after_ms"] == 500
    rates.take("b")
    clock.now_s = 0.5
    rates.take("a")
    with pytest.raises(RateLimited):
        rates.take("a")


def test_a_slow_rate_lets_one_through_at_first() -> None:
    clock = Clock()
    rates = Rates(0.1, clock)
    rates.take("a")
    with pytest.raises(RateLimited) as refused:
        rates.take("a")
    assert refused.value.details["retry_after_ms"] == 10_000


def test_it_remembers_a_bounded_number_of_callers() -> None:
    rates = Rates(1.0, Clock())
    for number in range(CALLERS_MAX + 10):
        rates.take(str(number))
    rates.take("0")  # It was forgotten, and is as good as new.
    with pytest.raises(RateLimited):
        rates.take(str(CALLERS_MAX + 9))


def test_so_many_are_in_work_at_once() -> None:
    admission = Admission(2, None)
    admission.enter("a")
    admission.enter("a")
    with pytest.raises(Overloaded) as refused:
        admission.enter("b")
    assert refused.value.details["limit"] == "gateway.requests_max"
    admission.leave()
    admission.enter("b")
