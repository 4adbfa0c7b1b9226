"""Durations are counted where they belong."""

from __future__ import annotations

from recollect.orchestrator.serving.latencies import BOUNDS_S, FAILED, count, figures, new_meter


def test_a_duration_is_counted_under_the_first_bound_that_it_does_not_pass() -> None:
    for took_us in (0, 1, 15, 16, 17, 1000, 32_000, 1_000_000, 33_554_431):
        meter = new_meter()
        count(meter, took_us)
        told = figures(meter)
        place = told["buckets"].index(1)
        assert took_us / 1e6 <= BOUNDS_S[place]
        assert place == 0 or took_us / 1e6 >= BOUNDS_S[place - 1]
        assert (told["count"], told["sum_s"]) == (1, took_us / 1e6)
    assert len(told["buckets"]) == len(BOUNDS_S) + 1


def test_what_takes_longer_than_all_bounds_or_runs_backwards_is_counted_too() -> None:
    meter = new_meter()
    for took_us in (1 << 40, -5_000_000):
        count(meter, took_us)
    meter[FAILED] += 1
    told = figures(meter)
    assert (told["buckets"][0], told["buckets"][-1], told["count"]) == (1, 1, 2)
    assert told["sum_s"] == (1 << 40) / 1e6
    assert told["failed"] == 1
