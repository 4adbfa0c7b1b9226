"""Rates and quantiles from counts."""

from __future__ import annotations

import pytest

from recollect.health.figures import quantile

BOUNDS_S = [0.001, 0.002, 0.004]


def test_a_quantile_lies_in_the_bucket_that_holds_it() -> None:
    assert quantile(BOUNDS_S, [0, 10, 0, 0], 0.5) == pytest.approx(0.0015)
    assert quantile(BOUNDS_S, [90, 0, 10, 0], 0.5) == pytest.approx(0.001 * 50 / 90)
    assert quantile(BOUNDS_S, [90, 0, 10, 0], 0.95) == pytest.approx(0.003)


def test_a_quantile_of_nothing_is_none_and_one_past_all_bounds_is_the_last() -> None:
    assert quantile(BOUNDS_S, [0, 0, 0, 0], 0.5) is None
    assert quantile(BOUNDS_S, [0, 0, 0, 5], 0.5) == 0.004
