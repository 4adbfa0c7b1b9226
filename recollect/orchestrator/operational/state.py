"""How things stand, as one caller may see it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from recollect.orchestrator.access.grants import covers
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.operational.interface import (
    ActiveTask,
    Event,
    Metric,
    OperationalMemory,
    Readable,
)
from recollect.orchestrator.operational.living import Living
from recollect.protocol import records


class OperationalState(msgspec.Struct, frozen=True):
    """The last events, the newest first; the metrics; the active tasks, the last changed first."""

    events: list[records.EventRecord]
    metrics: list[records.MetricRecord]
    active_tasks: list[records.ActiveTaskRecord]


class OperationalReading:
    """Reads operational memory for callers, each within what they may see."""

    def __init__(self, memory: OperationalMemory, living: Living) -> None:
        self._memory = memory
        self._living = living

    async def state(
        self,
        call: Call,
        namespace: str | None = None,
        *,
        events: int = 10,
        metrics: int = 100,
        tasks: int = 50,
    ) -> OperationalState:
        """How things stand in a namespace and those below it, or in all, so many of each."""
        readable = readable_in(call, namespace)
        await self._memory.refresh()
        return OperationalState(
            await self.events(call, readable, events),
            self.metrics(readable, limit=metrics),
            self.tasks(readable, tasks),
        )

    async def events(
        self, call: Call, readable: Readable, count: int, category: str | None = None
    ) -> list[records.EventRecord]:
        """The last events whose memories, if they are any, are still there."""
        while True:
            found = self._memory.events(readable, count, category)
            gone = await self._living.gone(
                call.now_us, [event.id for event in found if event.critical]
            )
            if not gone:
                return [event_record(event) for event in found]
            # Others move up in their place. Where one is gone, many may be: all are looked at.
            await self.forget_gone(call, readable)

    async def forget_gone(self, call: Call, readable: Readable) -> None:
        """Take out all events that a reader might see whose memories are not there any more."""
        gone = await self._living.gone(call.now_us, self._memory.critical_ids(readable))
        if gone:
            self._memory.discard(gone)

    def metrics(
        self,
        readable: Readable,
        keys: Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[records.MetricRecord]:
        found = self._memory.metrics(readable, keys)
        return [metric_record(metric) for metric in found[:limit]]

    def tasks(self, readable: Readable, limit: int) -> list[records.ActiveTaskRecord]:
        return [task_record(task) for task in self._memory.tasks(readable, limit)]


def readable_in(call: Call, namespace: str | None) -> Readable:
    """Of a namespace and those below it, or of all, what the caller may read."""
    patterns = call.grants.within(namespace)
    if patterns is None:
        if namespace is None:
            return lambda there: True
        patterns = (namespace,)
    elif not patterns:
        call.refusals.append(Refusal("", namespace, "not readable"))
    known: dict[str, bool] = {}

    def readable(there: str) -> bool:
        seen = known.get(there)
        if seen is None:
            seen = known[there] = any(covers(pattern, there) for pattern in patterns)
        return seen

    return readable


def event_record(event: Event) -> records.EventRecord:
    """An event as callers see it."""
    return {
        "id": event.id,
        "at": to_iso(event.at_us),
        "namespace": event.namespace,
        "category": event.category,
        "data": decode_json(event.data),
        "critical": event.critical,
        "author": event.author,
        "task_id": event.task_id,
        "session_id": event.session_id,
    }


def metric_record(metric: Metric) -> records.MetricRecord:
    """A metric as callers see it."""
    return {
        "namespace": metric.namespace,
        "key": metric.key,
        "value": metric.value,
        "at": to_iso(metric.at_us),
        "author": metric.author,
    }


def task_record(task: ActiveTask) -> records.ActiveTaskRecord:
    """An active task as callers see it."""
    return {
        "namespace": task.namespace,
        "task_id": task.task_id,
        "state": decode_json(task.state),
        "since": to_iso(task.since_us),
        "at": to_iso(task.at_us),
        "author": task.author,
    }
