"""What is known as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from recollect.health.manager import HealthManager
from recollect.health.states import SEVERITY
from recollect.protocol.records import Metrics

CONTENT_TYPE = CONTENT_TYPE_LATEST
BREAKER_STATES = ("closed", "half-open", "open")
OTHER = "(others)"
"""Stands for all namespaces beyond the largest."""


class Exposition:
    """The text that a scrape gets. It reads what the last look saw and asks nobody."""

    def __init__(self, manager: HealthManager) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(HealthCollector(manager))
        # Of this process itself; the orchestrator's figures have names of their own.
        for kind in (ProcessCollector, PlatformCollector, GCCollector):
            kind(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class HealthCollector(Collector):
    """Makes the metrics of one scrape."""

    def __init__(self, manager: HealthManager) -> None:
        self._manager = manager

    def collect(self) -> Iterable[Metric]:
        yield from self._states()
        sample = self._manager.metrics
        if sample is None:
            return
        metrics = sample.metrics
        yield _gauge("seen_seconds", "When the orchestrator's figures were seen.", sample.at_s)
        yield from _requests(metrics)
        yield from _storage(metrics)
        yield from _memories(metrics)
        yield from _search(metrics)
        yield from _caches(metrics)
        yield from _circuits(metrics)
        yield from _process(metrics)
        yield from self._jobs()

    def _states(self) -> Iterator[Metric]:
        help_text = "How a component stands: 0 healthy, 1 degraded, 2 down."
        family = GaugeMetricFamily("recollect_health_state", help_text, labels=["component"])
        family.add_metric(["overall"], SEVERITY[self._manager.state])
        for report in self._manager.status()["components"]:
            family.add_metric([report["name"]], SEVERITY[report["state"]])
        yield family

    def _jobs(self) -> Iterator[Metric]:
        jobs = self._manager.jobs()
        if not jobs:
            return
        ended = GaugeMetricFamily(
            "recollect_job_last_run_status",
            "1 for the outcome of a job's last run.",
            labels=["job", "run_status"],
        )
        took = GaugeMetricFamily(
            "recollect_job_last_duration_seconds", "How long it took.", labels=["job"]
        )
        for job in jobs:
            last = job["last"]
            if last is not None:
                ended.add_metric([job["name"], last["run_status"]], 1)
                if last["duration_s"] is not None:
                    took.add_metric([job["name"]], last["duration_s"])
        yield ended
        yield took


def _requests(metrics: Metrics) -> Iterator[Metric]:
    requests = metrics["requests"]
    durations = HistogramMetricFamily(
        "recollect_request_duration_seconds",
        "How long requests took in the orchestrator, failed ones included.",
        labels=["operation"],
    )
    failed = CounterMetricFamily(
        "recollect_requests_failed", "Requests that failed.", labels=["operation"]
    )
    bounds = [*(f"{bound:g}" for bound in requests["bucket_bounds_s"]), "+Inf"]
    for name, counted in requests["by_operation"].items():
        so_far, buckets = 0, []
        for bound, count in zip(bounds, counted["buckets"], strict=True):
            so_far += count
            buckets.append((bound, so_far))
        durations.add_metric([name], buckets, counted["sum_s"])
        failed.add_metric([name], counted["failed"])
    yield durations
    yield failed
    codes = CounterMetricFamily("recollect_errors", "Failures by their code.", labels=["code"])
    for code, count in requests["failed_by_code"].items():
        codes.add_metric([code], count)
    yield codes
    yield _gauge("requests_in_flight", "Requests under way.", requests["in_flight"])
    errors = metrics["errors"]
    yield _gauge("error_kinds", "Kinds of errors on the error bus.", errors["kinds"])


def _storage(metrics: Metrics) -> Iterator[Metric]:
    writer, disk = metrics["writer"], metrics["disk"]
    yield _gauge("writer_queue_length", "Writes that wait.", writer["queue_length"])
    yield _gauge("writer_lag_seconds", "How long the oldest write waits.", writer["lag_s"])
    yield _gauge(
        "writer_last_wait_seconds",
        "How long the oldest write of the last commit waited.",
        writer["last_wait_s"],
    )
    yield _counter("commits", "Commits, each of one or more writes.", writer["commits"])
    yield _counter("transactions", "Writes that were committed.", writer["transactions"])
    yield _counter("changes", "The number of the last change.", metrics["seq"])
    yield _gauge("disk_free_bytes", "Free space on the disk of the store.", disk["free_bytes"])
    yield _gauge("disk_total_bytes", "Size of that disk.", disk["total_bytes"])
    yield _gauge("database_bytes", "Size of the database.", disk["database_bytes"])
    yield _gauge("database_log_bytes", "Size of its write-ahead log.", disk["log_bytes"])


def _memories(metrics: Metrics) -> Iterator[Metric]:
    counted = metrics["memories"]
    tiers = {"short": 0, "medium": 0, "long": 0, **counted["by_tier"]}
    yield _labelled("memories", "Living memories by tier.", "tier", tiers)
    namespaces = dict(counted["by_namespace"])
    if counted["other_namespaces"]:
        namespaces[OTHER] = counted["other_namespaces"]
    yield _labelled("namespace_memories", "Living memories by namespace.", "namespace", namespaces)
    yield _gauge("memories_age_seconds", "How long ago they were counted.", counted["age_s"])


def _search(metrics: Metrics) -> Iterator[Metric]:
    embedding, index = metrics["embedding"], metrics["index"]
    yield _gauge("embedding_waiting", "Memories without a vector yet.", embedding["waiting"])
    yield _gauge("embedding_lag_seconds", "How long the first of them waits.", embedding["lag_s"])
    yield _gauge("index_vectors", "Vectors in the index.", index["vectors"])
    yield _gauge("index_lag", "Vectors that are not in the index yet.", index["lag"])
    yield _gauge("index_segments", "Segments of the index.", index["segments"])


def _caches(metrics: Metrics) -> Iterator[Metric]:
    caches = {
        "records": metrics["cache"],
        "embedding": metrics["embedding"].get("cache"),
        "redis": metrics["redis"].get("cache"),
    }
    for name, key in (("cache_hits", "hits"), ("cache_misses", "misses")):
        family = CounterMetricFamily(
            f"recollect_{name}", f"Looks into a cache: {key}.", labels=["cache"]
        )
        for cache, counted in caches.items():
            if isinstance(counted, dict) and isinstance(counted.get(key), int):
                family.add_metric([cache], counted[key])
        yield family


def _circuits(metrics: Metrics) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "recollect_breaker_state",
        "Circuits of the orchestrator: 0 closed, 1 half-open, 2 open.",
        labels=["service"],
    )
    for service, state in metrics["breakers"].items():
        known = state if state in BREAKER_STATES else "open"
        family.add_metric([service], BREAKER_STATES.index(known))
    yield family
    redis = metrics["redis"].get("state")
    if redis not in (None, "off"):
        yield _gauge("redis_up", "Whether Redis answers the orchestrator.", int(redis == "ok"))
        used_bytes = metrics["redis"].get("used_memory_bytes")
        if used_bytes is not None:
            yield _gauge("redis_used_bytes", "Memory that Redis takes.", used_bytes)


def _process(metrics: Metrics) -> Iterator[Metric]:
    process = metrics["process"]
    yield _gauge("orchestrator_uptime_seconds", "Since its start.", metrics["uptime_s"])
    yield _gauge("orchestrator_resident_bytes", "Its memory.", process["rss_bytes"])
    yield _counter("orchestrator_cpu_seconds", "Its processor time.", process["cpu_s"])
    yield _gauge("orchestrator_threads", "Its threads.", process["threads"])
    yield _gauge("orchestrator_open_files", "Its open files.", process["open_files"])


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"recollect_{name}", help_text, value)


def _counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"recollect_{name}", help_text, value)


def _labelled(name: str, help_text: str, label: str, values: Mapping[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"recollect_{name}", help_text, labels=[label])
    for given, value in values.items():
        family.add_metric([given], value)
    return family
