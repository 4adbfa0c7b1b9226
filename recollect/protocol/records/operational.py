"""The shapes of operational memory."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from recollect.protocol.records.working import GoalRecord


class EventRecord(TypedDict):
    """One event."""

    id: str
    at: str
    namespace: str
    category: str
    data: Any
    critical: bool
    author: str
    task_id: str | None
    session_id: str | None


class EventPushed(TypedDict):
    status: str
    event_id: str
    at: str
    durable: bool
    """Whether it survives whatever may happen: it was critical."""
    memory_id: NotRequired[str]
    """The memory that a critical event is."""


class EventsRecent(TypedDict):
    status: str
    events: list[EventRecord]
    count: int


class MetricRecord(TypedDict):
    """The latest value of a metric."""

    namespace: str
    key: str
    value: float | int | str | bool
    at: str
    author: str


class MetricUpdated(TypedDict):
    status: str
    key: str
    at: str


class MetricsFetched(TypedDict):
    status: str
    metrics: list[MetricRecord]
    count: int


class ActiveTaskRecord(TypedDict):
    """A task that is active, and what it is at."""

    namespace: str
    task_id: str
    state: dict[str, Any]
    since: str
    at: str
    author: str


class ActiveTaskSet(TypedDict):
    status: str
    task_id: str
    active: bool
    at: str


class ActiveTasksListed(TypedDict):
    status: str
    tasks: list[ActiveTaskRecord]
    count: int


class EventCounts(TypedDict):
    """What is in the ring of events."""

    kept: int
    kept_max: int
    critical: int
    by_category: dict[str, int]


class SystemSnapshot(TypedDict):
    status: str
    at: str
    kept_in: str
    """Where operational memory is: `process` or `redis`."""
    degraded: NotRequired[str]
    """What is wrong with it, if anything is."""
    events: EventCounts
    latest_events: list[EventRecord]
    metrics: list[MetricRecord]
    active_tasks: list[ActiveTaskRecord]
    active_goals: list[GoalRecord]
