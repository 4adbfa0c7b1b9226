"""Operational memory: what happens right now. Fast, bounded, the same for all agents."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

Category = Annotated[
    str,
    Meta(
        pattern=fields.WORD,
        description="Kind of event, a word of yours in small letters, such as deploy or disk.full.",
    ),
]
MetricKey = Annotated[str, Meta(min_length=1, description="Name of the metric.")]


class PushEventOptions(Operation[records.EventPushed], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="write", http=("POST", "/v1/operational/events"))
class PushEvent(PushEventOptions, frozen=True):
    """Note that something happened. The last 10,000 events are kept; a critical one for good."""

    category: Category
    data: Annotated[Any, Meta(description="Any JSON value: what happened.")] = None
    critical: Annotated[
        bool,
        Meta(description="On disk before it is acknowledged, and a memory that can be recalled."),
    ] = False


class RecentEventsOptions(Operation[records.EventsRecent], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="read", http=("GET", "/v1/operational/events"))
class RecentEvents(RecentEventsOptions, frozen=True):
    """The last events, the newest first."""

    count: fields.Limit = 50
    category: Annotated[str | None, Meta(description="Only events of this category.")] = None


class UpdateMetricOptions(Operation[records.MetricUpdated], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="write", http=("PUT", "/v1/operational/metrics/{key}"))
class UpdateMetric(UpdateMetricOptions, frozen=True):
    """Set the latest value of a metric."""

    key: MetricKey
    value: Annotated[float | int | str | bool, Meta(description="A number, a text or a truth.")]


class GetMetricsOptions(Operation[records.MetricsFetched], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="read", http=("GET", "/v1/operational/metrics"))
class GetMetrics(GetMetricsOptions, frozen=True):
    """The latest value of each metric."""

    keys: Annotated[list[str] | None, Meta(description="Only these; all if absent.")] = None


class SetActiveTaskOptions(Operation[records.ActiveTaskSet], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="write", http=("PUT", "/v1/operational/tasks/{task_id}"))
class SetActiveTask(SetActiveTaskOptions, frozen=True):
    """Say what a task is at right now; without a state it is no longer active."""

    task_id: fields.TaskId
    state: Annotated[
        dict[str, Any] | None, Meta(description="Any JSON object; null takes it from the list.")
    ] = None


class ActiveTasksOptions(Operation[records.ActiveTasksListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None


@operation(access="read", http=("GET", "/v1/operational/tasks"))
class ActiveTasks(ActiveTasksOptions, frozen=True):
    """The tasks that are active, each with its state, the last changed first."""

    limit: fields.Limit = 50


@operation(access="read", http=("GET", "/v1/operational/snapshot"))
class SystemSnapshot(Operation[records.SystemSnapshot], frozen=True, kw_only=True):
    """How things stand: the last events, the metrics, the active tasks and goals."""

    namespace: fields.NamespaceFilter = None
    events: Annotated[
        int, Meta(ge=0, le=fields.INTEGER_MAX, description="How many of the last events to show.")
    ] = 10
