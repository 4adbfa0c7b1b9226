"""Rates and quantiles from two looks at the orchestrator's counts. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from recollect.protocol.records import Metrics


class Sample(NamedTuple):
    """The orchestrator's counts at one moment of our own clock."""

    at_s: float
    metrics: Metrics


class Figures(TypedDict):
    """What is worth knowing at a glance."""

    window_s: float
    requests_per_s: float
    failed_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    memories: int
    by_tier: dict[str, int]
    in_flight: int
    writes_waiting: int
    writer_lag_s: float
    cache_hit_ratio: float | None
    disk_free_bytes: int
    database_bytes: int
    rss_bytes: int
    uptime_s: float
    seq: int


def is_continued(earlier: Metrics, later: Metrics) -> bool:
    """Whether both are of one life of the orchestrator, so that their difference says something."""
    same = earlier["process"]["pid"] == later["process"]["pid"]
    return same and later["uptime_s"] >= earlier["uptime_s"]


def quantile(bounds_s: Sequence[float], buckets: Sequence[int], part: float) -> float | None:
    """The duration that a part of the counted ones did not pass; None if none was counted.

    Within a bucket they are taken to be spread evenly. What is past the last bound counts as it.
    """
    total = sum(buckets)
    if total <= 0:
        return None
    wanted, passed = part * total, 0.0
    edges = [0.0, *bounds_s]
    for (low_s, high_s), count in zip(pairwise(edges), buckets, strict=False):
        if count and passed + count >= wanted:
            return low_s + (high_s - low_s) * max(0.0, wanted - passed) / count
        passed += count
    return edges[-1]


def buckets_between(
    earlier: Metrics | None, later: Metrics, operation: str | None = None
) -> list[int]:
    """Answers by duration since an earlier look, of one operation or of all."""
    width = len(later["requests"]["bucket_bounds_s"]) + 1
    summed = [0] * width
    before = {} if earlier is None else earlier["requests"]["by_operation"]
    for name, counted in later["requests"]["by_operation"].items():
        if operation is not None and name != operation:
            continue
        known = before.get(name)
        old = known["buckets"] if known else [0] * width
        for place, (now, then) in enumerate(zip(counted["buckets"], old, strict=True)):
            summed[place] += max(0, now - then)
    return summed


def figures_of(earlier: Sample | None, later: Sample) -> Figures:
    """The figures at one moment, with rates since an earlier one if that was of the same life."""
    metrics = later.metrics
    if earlier is None or not is_continued(earlier.metrics, metrics):
        earlier = None
    window_s = later.at_s - earlier.at_s if earlier else metrics["uptime_s"]
    buckets = buckets_between(earlier.metrics if earlier else None, metrics)
    failed = _failed(metrics) - (_failed(earlier.metrics) if earlier else 0)
    bounds_s = metrics["requests"]["bucket_bounds_s"]
    return {
        "window_s": window_s,
        "requests_per_s": _per_s(sum(buckets), window_s),
        "failed_per_s": _per_s(failed, window_s),
        "p50_ms": _ms(quantile(bounds_s, buckets, 0.5)),
        "p95_ms": _ms(quantile(bounds_s, buckets, 0.95)),
        "p99_ms": _ms(quantile(bounds_s, buckets, 0.99)),
        "memories": metrics["memories"]["total"],
        "by_tier": metrics["memories"]["by_tier"],
        "in_flight": metrics["requests"]["in_flight"],
        "writes_waiting": metrics["writer"]["queue_length"],
        "writer_lag_s": metrics["writer"]["lag_s"],
        "cache_hit_ratio": hit_ratio(metrics["cache"]),
        "disk_free_bytes": metrics["disk"]["free_bytes"],
        "database_bytes": metrics["disk"]["database_bytes"],
        "rss_bytes": metrics["process"]["rss_bytes"],
        "uptime_s": metrics["uptime_s"],
        "seq": metrics["seq"],
    }


def hit_ratio(cache: Mapping[str, Any]) -> float | None:
    """The part of the looks into a cache that found something; None if there was none."""
    looks = cache.get("hits", 0) + cache.get("misses", 0)
    return cache["hits"] / looks if looks else None


def _failed(metrics: Metrics) -> int:
    return sum(metrics["requests"]["failed_by_code"].values())


def _per_s(count: int, window_s: float) -> float:
    return max(0, count) / window_s if window_s > 0 else 0.0


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
