"""Operational memory shared through Redis, with a copy in process that answers.

What is noted is in the copy at once, and in Redis a few milliseconds later. A read first lets the
copy catch up with what others noted, in one round trip, and does without that when Redis fails or
takes too long. So Redis may die or hang at any time: no request fails, and what was noted meanwhile
is given when it is back.

One task does all that goes to Redis, a step at a time:

    wait for something to give or a reader ──► give and take ──► readers go on
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import structlog

from recollect.config.settings import OperationalSettings
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.operational.in_process import InProcess
from recollect.orchestrator.operational.interface import ActiveTask, Event, Metric
from recollect.orchestrator.operational.latest import Place
from recollect.orchestrator.operational.shared_log import (
    ERASED,
    GONE,
    Change,
    Position,
    SharedLog,
)
from recollect.orchestrator.operational.unshared import GIVEN_AT_ONCE, Unshared
from recollect.orchestrator.redis.connecting import on_loop
from recollect.orchestrator.redis.link import RedisLink

log = structlog.get_logger()

GATHER_S = 0.005
"""How long what is noted waits for more to be given with it."""
GATHER_PRIVATE_S = 0.05
"""The same where nobody else is waiting for it."""
IDLE_S = 1.0
"""At least so often the copy catches up, also if nobody asks."""
START_S = 2.0
STOP_S = 2.0
READ_MAX = 1_000
STEPS_MAX = 10_000
"""Round trips after which a step ends, though there may be more to take."""

_place_in = msgspec.json.Decoder(Place).decode
_metric_in = msgspec.json.Decoder(Metric).decode
_task_in = msgspec.json.Decoder(ActiveTask).decode


class RedisMemory(InProcess):
    """Shared by all orchestrators of a store, and there after a restart."""

    kept_in = "redis"

    def __init__(self, settings: OperationalSettings, ids: IdSource, link: RedisLink) -> None:
        super().__init__(settings)
        assert link.url is not None
        self._settings = settings
        self._client = on_loop(link.url, link.timeout_s)
        self._link = link
        # In a Redis of its own there is nothing that is not known here.
        self.shared = not link.private
        self._ids = ids
        self._unshared = Unshared(
            self._settings.events_max,
            self._settings.metrics_max + self._settings.active_tasks_max,
            self._settings.bytes_max,
        )
        self._position = Position()
        # Whether Redis was found to have lost what it had, and was not given it again yet.
        self._lost = False
        self._read_max = READ_MAX
        # Readers that wait for the next step; and what wakes the task for it.
        self._readers: list[asyncio.Future[None]] = []
        self._asked = asyncio.Event()
        self._noted = asyncio.Event()
        self._tried = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failure: str | None = None
        self._task: asyncio.Task[None] | None = None

    def degraded(self) -> str | None:
        return self._failure

    def push(self, event: Event) -> Event:
        kept = super().push(event)
        if kept is event:
            self._unshared.add_event(event)
            self._noted.set()
        return kept

    def discard(self, event_ids: Collection[str]) -> None:
        super().discard(event_ids)
        for event_id in event_ids:
            self._give(Change(ERASED, event_id, GONE))

    def set_metric(self, metric: Metric) -> None:
        super().set_metric(metric)
        self._give(Change("m", _text((metric.namespace, metric.key)), _text(metric)))

    def set_task(self, task: ActiveTask) -> None:
        super().set_task(task)
        place = task.namespace, task.task_id
        self._give(Change("t", _text(place), _text(self._tasks.get(place))))

    def end_task(self, namespace: str, task_id: str) -> None:
        super().end_task(namespace, task_id)
        # It may be known to others only.
        self._give(Change("t", _text((namespace, task_id)), GONE))

    def _give(self, change: Change) -> None:
        self._unshared.add_change(change)
        self._noted.set()

    async def refresh(self) -> None:
        if not self.shared or self._task is None or not self._link.usable():
            return
        turn = asyncio.get_running_loop().create_future()
        self._readers.append(turn)
        self._asked.set()
        self._noted.set()
        await asyncio.wait({turn}, timeout=self._link.timeout_s)

    async def start(self, store_id: str, critical: Iterable[Event]) -> None:
        self._shared = SharedLog(self._client, store_id, self._ids.new, self._settings)
        self._task = asyncio.create_task(self._run())
        self._noted.set()
        await _either(self._tried, START_S)
        self._ring.refill(critical)

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stopping.set()
        self._noted.set()
        self._asked.set()
        await asyncio.wait({self._task}, timeout=STOP_S)
        self._task.cancel()
        self._task = None
        try:
            async with asyncio.timeout(STOP_S):
                await self._shared.close()
        except Exception as error:
            log.debug("Redis was not closed.", action="redis", reason=str(error))

    async def _run(self) -> None:
        """Give and take, until everything is given that was there when it is told to stop."""
        while True:
            stopping = self._stopping.is_set()
            closed_in_s = self._link.breaker.wait_s()
            if closed_in_s:
                if stopping:
                    return
                await _either(self._stopping, closed_in_s)
                continue
            await self._something_to_do()
            self._noted.clear()
            self._asked.clear()
            readers, self._readers = self._readers, []
            well = await self._step()
            self._tried.set()
            for turn in readers:
                if not turn.done():
                    turn.set_result(None)
            more = well and bool(self._unshared)
            if stopping and not more:
                return
            if more:
                # What did not go in this step need not wait for anybody.
                self._noted.set()
                self._asked.set()

    async def _something_to_do(self) -> None:
        if self._stopping.is_set() or len(self._unshared) >= GIVEN_AT_ONCE:
            return
        await _either(self._noted, IDLE_S)
        if not self._asked.is_set():
            await _either(self._asked, GATHER_S if self.shared else GATHER_PRIVATE_S)

    async def _step(self) -> bool:
        """Give what waits and take what is new; whether Redis did its part."""
        try:
            for _ in range(STEPS_MAX):
                if not await self._exchange():
                    break
        except Exception as error:
            # Whatever it is, there is a copy to go on with: see `degraded`.
            self._failed(error)
            return False
        self._link.succeeded()
        self._read_max = min(READ_MAX, 2 * self._read_max)
        self._failure = None
        return True

    def _failed(self, error: Exception) -> None:
        self._link.failed(error)
        # It may have been too much at once.
        self._read_max = max(1, self._read_max // 4)
        # Without the address, which is not for everybody.
        self._failure = (
            f"Redis does not answer ({type(error).__name__}): what other orchestrators noted since "
            "is missing, and what this one notes is given to them when it is back."
        )

    async def _exchange(self) -> bool:
        """One round trip; whether there is more to take."""
        batch = self._unshared.take()
        try:
            taken = await self._shared.exchange(
                self._position,
                batch.events,
                batch.changes,
                read_max=self._read_max,
                events_max=self._ring.room(),
            )
        except BaseException:
            self._unshared.put_back(batch)
            raise
        if taken.first or taken.position.epoch != self._position.epoch:
            # An empty Redis, or another one than it was: what is known here may be missing there.
            self._lost = self._lost or taken.first or self._position.epoch != ""
            await self._begin(Position(epoch=taken.position.epoch))
            return True
        self._ring.extend(taken.events)
        # What was given in the same step came after what was taken in it.
        given = {change[:2] for change in batch.changes if not change.only_new}
        self._follow(change for change in taken.changes if change[:2] not in given)
        if taken.gap:
            await self._read_state(taken.position, replace=True)
        else:
            self._position = taken.position
        return taken.more

    async def _begin(self, position: Position) -> None:
        """Take up what is shared; and give to a Redis that lost something what is known here."""
        # Until all is taken up, the next step begins anew.
        self._position = Position()
        found: list[Event] = []
        for _ in range(STEPS_MAX):
            taken = await self._shared.exchange(
                position, [], [], read_max=self._read_max, events_max=self._ring.room()
            )
            found += taken.events
            position = taken.position
            if not taken.more:
                break
        if self._lost:
            shared = {event.id for event in found}
            self._unshared.set_events(event for event in self._ring if event.id not in shared)
            for place, metric in self._metrics.items():
                self._offer("m", place, metric)
            for place, task in self._tasks.items():
                self._offer("t", place, task)
        self._ring.refill(found)
        await self._read_state(position, replace=False)
        self._lost = False

    def _offer(self, kind: Any, place: Place, entry: Metric | ActiveTask) -> None:
        field = _text(place)
        if not self._unshared.changed(kind, field):
            self._unshared.add_change(Change(kind, field, _text(entry), only_new=True))

    async def _read_state(self, position: Position, *, replace: bool) -> None:
        """Read all metrics and tasks; changes since its begin come again, and do no harm."""
        position = await self._shared.end_of_changes(position)
        found = await self._shared.state()
        if replace:
            shared = {(change.kind, change.field) for change in found}
            known = [Change("m", _text(place), GONE) for place, _ in self._metrics.items()]
            known += [Change("t", _text(place), GONE) for place, _ in self._tasks.items()]
            found += [change for change in known if change[:2] not in shared]
        self._follow(found)
        self._position = position

    def _follow(self, changes: Iterable[Change]) -> None:
        """Do here what was done elsewhere, unless something newer waits to be given."""
        erased = []
        for change in changes:
            if change.kind == ERASED:
                erased.append(change.field)
            elif not self._unshared.changed(change.kind, change.field):
                try:
                    self._set(change)
                except msgspec.DecodeError as error:
                    # Another version may have given it.
                    log.warning("A change is not readable.", action="redis", reason=str(error))
        if erased:
            self._ring.discard(erased)

    def _set(self, change: Change) -> None:
        place = _place_in(change.field)
        if change.kind == "m":
            if change.value:
                self._metrics.set(place, _metric_in(change.value))
            else:
                self._metrics.drop(place)
        elif change.value:
            self._tasks.set(place, _task_in(change.value))
        else:
            self._tasks.drop(place)


def _text(value: Any) -> str:
    return encode_json(value).decode()


async def _either(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for an event, or for so long."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        pass
