"""The curves: one point for each pair of looks, and a gap where nobody answered."""

from __future__ import annotations

from typing import Any, cast

from recollect.health.dashboard.drawing.live import WINDOW_S, Live
from recollect.health.figures import Sample
from recollect.protocol.records import Metrics

BOUNDS_S = [0.001, 0.01]


def sample(at_s: float, count: int, *, pid: int = 1) -> Sample:
    counted = {"count": count, "failed": 0, "sum_s": 0.0, "buckets": [count, 0, 0]}
    metrics: dict[str, Any] = {
        "uptime_s": at_s,
        "process": {"pid": pid, "rss_bytes": 1},
        "requests": {
            "in_flight": 1,
            "by_operation": {"recall": counted},
            "bucket_bounds_s": BOUNDS_S,
            "failed_by_code": {},
        },
        "memories": {"total": 1, "by_tier": {}},
        "writer": {"queue_length": 0, "lag_s": 0.0},
        "cache": {},
        "disk": {"free_bytes": 1, "database_bytes": 1},
        "seq": 1,
    }
    return Sample(at_s, cast(Metrics, metrics))


def test_each_pair_of_looks_is_one_point() -> None:
    samples = [sample(100, 0), sample(102, 10), sample(104, 10)]
    live = Live(samples, 2.0, now_s=lambda: 104.0)
    points = live.points()
    assert [point.requests_per_s for point in points] == [5.0, 0.0]
    assert (points[0].p50_ms, points[1].p50_ms) == (0.5, None)
    samples.append(sample(106, 14))
    assert [point.requests_per_s for point in live.points()] == [5.0, 0.0, 2.0]


def test_a_curve_is_broken_where_nobody_answered_and_forgets_what_is_old() -> None:
    now_s = 200.0
    samples = [sample(100, 0), sample(102, 2), sample(150, 4), sample(152, 6)]
    live = Live(samples, 2.0, now_s=lambda: now_s)
    assert [point.requests_per_s is None for point in live.points()] == [False, True, False, False]
    assert live.latest() is None
    now_s = 153.0
    assert live.latest() is samples[-1]
    now_s = 153.0 + WINDOW_S
    assert live.points() == []


def test_another_life_of_the_orchestrator_makes_no_point() -> None:
    live = Live([sample(100, 50), sample(102, 1, pid=2)], 2.0, now_s=lambda: 103.0)
    assert live.points() == []
