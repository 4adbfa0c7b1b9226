"""Operational memory: what happens right now, noted on the event loop and seen by all at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from typing import Any

from recollect.config.settings import OperationalSettings
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.operational import critical
from recollect.orchestrator.operational.answers import Answers, mark_of
from recollect.orchestrator.operational.interface import (
    ActiveTask,
    Event,
    Metric,
    MetricValue,
    OperationalMemory,
    bytes_of,
)
from recollect.orchestrator.operational.state import OperationalReading, readable_in
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.reading import active_goals, goal_record
from recollect.protocol import records
from recollect.protocol.collection_names import EVENTS
from recollect.protocol.errors import InvalidArgument, LimitExceeded
from recollect.protocol.operations import (
    ActiveTasks,
    AddMemory,
    GetMetrics,
    PushEvent,
    RecentEvents,
    SetActiveTask,
    SystemSnapshot,
    UpdateMetric,
)

GOALS_SHOWN_MAX = 50

Writing = Callable[[WriteTransaction], records.EventPushed]


class OperationalService:
    """Events, metrics and active tasks. Only what is critical waits for the storage."""

    def __init__(
        self,
        storage: Storage,
        memory: OperationalMemory,
        reading: OperationalReading,
        typed: TypedMemories,
        validator: Validator,
        ids: IdSource,
        settings: OperationalSettings,
    ) -> None:
        """`ids` is used on the event loop alone."""
        self._storage = storage
        self._memory = memory
        self._reading = reading
        self._typed = typed
        self._validator = validator
        self._ids = ids
        self._settings = settings
        self._bytes_max = min(settings.event_bytes_max, settings.bytes_max)
        self._answers = Answers(settings.keys_max)

    @writes(PushEvent)
    def push_event(self, call: Call, operation: PushEvent) -> bytes | Coroutine[Any, Any, Writing]:
        answered = self._answers.find(call, operation)
        if answered is not None:
            return answered
        data = self._json("data", operation.data)
        if operation.critical:
            return self._push_critical(call, operation, data)
        event = Event(
            id=self._ids.new(),
            at_us=call.now_us,
            namespace=operation.namespace,
            category=operation.category,
            data=data,
            critical=False,
            author=call.author,
            task_id=call.task,
            session_id=call.session,
            mark=mark_of(call) if self._memory.shared else None,
        )
        kept = self._memory.push(event)
        pushed: records.EventPushed = {
            "status": "success",
            "event_id": kept.id,
            "at": to_iso(kept.at_us),
            "durable": False,
        }
        return self._answers.keep(call, operation, pushed)

    async def _push_critical(self, call: Call, operation: PushEvent, data: str) -> Writing:
        """A critical event: a memory first, and an event like others once that is on disk."""
        content = critical.content_of(
            operation.category, decode_json(data), self._validator.limits.content_chars_max
        )
        adding = AddMemory(
            content,
            critical.MEMORY_TYPE,
            "medium",
            critical.IMPORTANCE,
            namespace=operation.namespace,
        )
        draft = await self._typed.draft(call, EVENTS, adding)

        def write(transaction: WriteTransaction) -> records.EventPushed:
            row = self._typed.insert(call, transaction, draft)
            event = Event(
                id=row.id,
                at_us=row.created_us,
                namespace=row.namespace,
                category=operation.category,
                data=data,
                critical=True,
                author=call.author,
                task_id=call.task,
                session_id=call.session,
            )
            critical.insert(transaction, row, event)
            pushed: records.EventPushed = {
                "status": "success",
                "event_id": row.id,
                "at": to_iso(event.at_us),
                "durable": True,
                "memory_id": row.id,
            }

            def note() -> None:
                self._memory.push(event)
                self._answers.keep(call, operation, pushed)

            transaction.after_commit.append(note)
            return pushed

        return write

    @reads(RecentEvents)
    async def recent_events(self, call: Call, operation: RecentEvents) -> records.EventsRecent:
        check = self._validator
        check.at_most("page_items_max", "count", operation.count, "items")
        if operation.category is not None:
            check.asked("category", operation.category, "key_chars_max")
        readable = readable_in(call, self._home(operation.namespace))
        await self._memory.refresh()
        found = await self._reading.events(call, readable, operation.count, operation.category)
        return {"status": "success", "events": found, "count": len(found)}

    @writes(UpdateMetric)
    def update_metric(self, call: Call, operation: UpdateMetric) -> bytes:
        answered = self._answers.find(call, operation)
        if answered is not None:
            return answered
        key = self._validator.text("key", operation.key, "key_chars_max")
        metric = Metric(
            namespace=operation.namespace,
            key=key,
            value=self._value(key, operation.value),
            at_us=call.now_us,
            author=call.author,
        )
        self._memory.set_metric(metric)
        updated: records.MetricUpdated = {
            "status": "success",
            "key": key,
            "at": to_iso(metric.at_us),
        }
        return self._answers.keep(call, operation, updated)

    @reads(GetMetrics)
    async def get_metrics(self, call: Call, operation: GetMetrics) -> records.MetricsFetched:
        check = self._validator
        keys = None
        if operation.keys is not None:
            check.at_most("page_items_max", "keys", len(operation.keys), "items")
            keys = {check.asked("keys", key, "key_chars_max") for key in operation.keys}
        readable = readable_in(call, self._home(operation.namespace))
        await self._memory.refresh()
        found = self._reading.metrics(readable, keys)
        return {"status": "success", "metrics": found, "count": len(found)}

    @writes(SetActiveTask)
    def set_active_task(self, call: Call, operation: SetActiveTask) -> bytes:
        answered = self._answers.find(call, operation)
        if answered is not None:
            return answered
        task_id = self._validator.text("task_id", operation.task_id, "key_chars_max")
        if operation.state is None:
            self._memory.end_task(operation.namespace, task_id)
        else:
            task = ActiveTask(
                namespace=operation.namespace,
                task_id=task_id,
                state=self._json("state", operation.state),
                since_us=call.now_us,
                at_us=call.now_us,
                author=call.author,
            )
            self._memory.set_task(task)
        done: records.ActiveTaskSet = {
            "status": "success",
            "task_id": task_id,
            "active": operation.state is not None,
            "at": to_iso(call.now_us),
        }
        return self._answers.keep(call, operation, done)

    @reads(ActiveTasks)
    async def active_tasks(self, call: Call, operation: ActiveTasks) -> records.ActiveTasksListed:
        limit = self._validator.page(operation.limit)
        readable = readable_in(call, self._home(operation.namespace))
        await self._memory.refresh()
        found = self._reading.tasks(readable, limit)
        return {"status": "success", "tasks": found, "count": len(found)}

    @reads(SystemSnapshot)
    async def system_snapshot(
        self, call: Call, operation: SystemSnapshot
    ) -> records.SystemSnapshot:
        check = self._validator
        check.at_most("page_items_max", "events", operation.events, "items")
        namespace = self._home(operation.namespace)
        most = check.limits.page_items_max

        def read_goals(session: Session) -> list[records.GoalRecord]:
            found = active_goals(call, session, namespace, min(GOALS_SHOWN_MAX, most))
            return [goal_record(call, goal) for goal in found]

        goals = await self._storage.read(read_goals)
        readable = readable_in(call, namespace)
        await self._memory.refresh()
        # What is gone is not counted either.
        await self._reading.forget_gone(call, readable)
        latest = await self._reading.events(call, readable, operation.events)
        counts = self._memory.counts(readable)
        snapshot: records.SystemSnapshot = {
            "status": "success",
            "at": to_iso(call.now_us),
            "kept_in": self._memory.kept_in,
            "events": {
                "kept": counts.kept,
                "kept_max": self._settings.events_max,
                "critical": counts.critical,
                "by_category": counts.by_category,
            },
            "latest_events": latest,
            "metrics": self._reading.metrics(readable, limit=most),
            "active_tasks": self._reading.tasks(readable, most),
            "active_goals": goals,
        }
        degraded = self._memory.degraded()
        if degraded is not None:
            snapshot["degraded"] = degraded
        return snapshot

    def _home(self, namespace: str | None) -> str | None:
        return None if namespace is None else self._validator.namespace(namespace)

    def _json(self, field: str, value: Any) -> str:
        """A JSON value as it may be kept, within the limit of one event."""
        text = self._validator.json(field, value, "value_bytes_max")
        size = bytes_of(text)
        if size > self._bytes_max:
            raise LimitExceeded(
                f"{field} has {size:,} bytes as JSON; the limit operational.event_bytes_max is "
                f"{self._bytes_max:,}.",
                field=field,
                limit="operational.event_bytes_max",
                maximum=self._bytes_max,
                actual=size,
            )
        return text

    def _value(self, key: str, value: MetricValue) -> MetricValue:
        """A metric's value as it may be kept; its key may call it a password."""
        check = self._validator
        if isinstance(value, str):
            check.asked("value", value, "key_chars_max")
            cleaned: MetricValue = check.cleaned("value", value, key)
            return cleaned
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidArgument(f"value is {value}, which JSON cannot hold.", field="value")
        return value
