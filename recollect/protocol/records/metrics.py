"""The shape of the figures by which the service is watched."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class ProcessFigures(TypedDict):
    """What a process takes of its machine."""

    pid: int
    rss_bytes: int
    cpu_s: float
    threads: int
    open_files: int


class OperationFigures(TypedDict):
    """How often an operation was answered since the start, and how long that took."""

    count: int
    failed: int
    sum_s: float
    buckets: list[int]
    """Answers by duration: as many as there are bounds, and one for what took longer than all."""


class RequestFigures(TypedDict):
    in_flight: int
    in_flight_max: int
    waiting: int
    """Writes that wait for the writer."""
    by_operation: dict[str, OperationFigures]
    bucket_bounds_s: list[float]
    failed_by_code: dict[str, int]


class WriterFigures(TypedDict):
    queue_length: int
    commits: int
    transactions: int
    lag_s: float
    """How long the oldest write that is not answered yet has waited; zero if none is."""
    last_wait_s: float
    """How long the oldest write of the last commit had to wait for it."""


class MemoryCounts(TypedDict):
    """Living memories, as they were counted a while ago."""

    total: int
    by_tier: dict[str, int]
    by_namespace: dict[str, int]
    """The largest namespaces."""
    other_namespaces: int
    """Memories of all the others together."""
    age_s: float
    """How long ago they were counted."""


class DiskFigures(TypedDict):
    free_bytes: int
    total_bytes: int
    database_bytes: int
    log_bytes: int


class ErrorFigures(TypedDict):
    kinds: int
    count: int


class Metrics(TypedDict):
    status: str
    at: str
    uptime_s: float
    version: str
    process: ProcessFigures
    requests: RequestFigures
    writer: WriterFigures
    cache: dict[str, Any]
    embedding: dict[str, Any]
    index: dict[str, Any]
    redis: dict[str, Any]
    memories: MemoryCounts
    disk: DiskFigures
    errors: ErrorFigures
    breakers: dict[str, str]
    seq: int
    purges: NotRequired[dict[str, Any]]
    clock_offset_s: float
    """How far the machine's clock is ahead of the orchestrator's, which does not follow a jump."""
