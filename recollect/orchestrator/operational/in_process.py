"""Operational memory in this process alone; also the copy at hand of what is shared."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import itemgetter

import msgspec

from recollect.config.settings import OperationalSettings
from recollect.orchestrator.operational.interface import (
    ActiveTask,
    Counts,
    Event,
    Metric,
    Readable,
    bytes_of,
)
from recollect.orchestrator.operational.latest import Latest
from recollect.orchestrator.operational.ring import EventRing

_place = itemgetter(0)


class InProcess:
    """Gone with the process, but for the critical events, which the storage has."""

    kept_in = "process"
    shared = False

    def __init__(self, settings: OperationalSettings) -> None:
        self._ring = EventRing(settings.events_max, settings.bytes_max)
        self._metrics: Latest[Metric] = Latest(settings.metrics_max)
        self._tasks: Latest[ActiveTask] = Latest(
            settings.active_tasks_max, settings.bytes_max, lambda task: bytes_of(task.state)
        )

    def degraded(self) -> str | None:
        return None

    def push(self, event: Event) -> Event:
        return event if self._ring.push(event) else self._ring.same_as(event)

    def discard(self, event_ids: Collection[str]) -> None:
        self._ring.discard(event_ids)

    def set_metric(self, metric: Metric) -> None:
        self._metrics.set((metric.namespace, metric.key), metric)

    def set_task(self, task: ActiveTask) -> None:
        place = task.namespace, task.task_id
        before = self._tasks.get(place)
        if before is not None:
            task = msgspec.structs.replace(task, since_us=before.since_us)
        self._tasks.set(place, task)

    def end_task(self, namespace: str, task_id: str) -> None:
        self._tasks.drop((namespace, task_id))

    async def refresh(self) -> None:
        """There is nobody else."""

    def events(self, readable: Readable, count: int, category: str | None = None) -> list[Event]:
        return self._ring.latest(readable, count, category)

    def critical_ids(self, readable: Readable) -> list[str]:
        return [event.id for event in self._ring if event.critical and readable(event.namespace)]

    def metrics(self, readable: Readable, keys: Collection[str] | None = None) -> list[Metric]:
        found = [
            entry
            for entry in self._metrics.items()
            if (keys is None or entry[0][1] in keys) and readable(entry[0][0])
        ]
        found.sort(key=_place)
        return [metric for _, metric in found]

    def tasks(self, readable: Readable, limit: int) -> list[ActiveTask]:
        found: list[ActiveTask] = []
        for task in self._tasks.latest():
            if len(found) == limit:
                break
            if readable(task.namespace):
                found.append(task)
        return found

    def counts(self, readable: Readable) -> Counts:
        return self._ring.counts(readable)

    async def start(self, store_id: str, critical: Iterable[Event]) -> None:
        self._ring.refill(critical)

    async def stop(self) -> None:
        """There is nobody to hand anything on to."""
