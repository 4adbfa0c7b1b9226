"""The work of one run: its calls, each of which has its effect once, and what they came to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from recollect.client import AsyncMemoryClient
from recollect.config import Settings
from recollect.protocol.errors import (
    CircuitOpen,
    ConnectionLost,
    LeaseLost,
    Overloaded,
    RateLimited,
    RecollectError,
    RequestTimeout,
    ShuttingDown,
    Unreachable,
)
from recollect.protocol.operation import Operation
from recollect.protocol.operations import ReportJob
from recollect.protocol.records import JobRunRecord

R = TypeVar("R")

STEPS_MAX = 10_000
UNDOABLE_MAX = 100
TELL_EVERY_S = 0.5
TELL_TIMEOUT_S = 2.0
PAUSE_S = 0.2
PAUSE_S_MAX = 5.0
BETWEEN_STEPS_S = 0.02
# Nothing was done, whatever was asked for: it may be asked for again.
NOT_DONE = (Unreachable, CircuitOpen, Overloaded, RateLimited, ShuttingDown)
# Whether it was done is not known: it may be asked for again where its key keeps it to one effect.
UNKNOWN = (ConnectionLost, RequestTimeout)


class Skipped(Exception):
    """There is nothing that this run could do; it says why."""


class Failed(Exception):
    """The run did its work, and what it came to is a failure."""


class Work:
    """One run at work, in the hands of its job."""

    def __init__(
        self,
        client: AsyncMemoryClient,
        run: JobRunRecord,
        settings: Settings,
        time_limit_s: float,
    ) -> None:
        """`client` writes under the lease of the scheduler."""
        self.settings = settings
        self.dry_run = run["dry_run"]
        self.counts: dict[str, Any] = {}
        """What was done so far."""
        self._client = client
        self._run_id = run["job_run_id"]
        self._time_limit_s = time_limit_s
        self._steps = 0
        self._told_s = 0.0

    async def call(self, operation: Operation[R], timeout_s: float | None = None) -> R:
        """Carry out one step. Its key is made from the run and its place in it, so that it has its
        effect once however often it is sent; while the orchestrator is away it waits."""
        self._steps += 1
        keyed = msgspec.structs.replace(
            operation,
            idempotency_key=f"job:{self._run_id}:{self._steps}",
            timeout=timeout_s or self._time_limit_s,
        )
        pause_s = PAUSE_S
        while True:
            try:
                return await self._client.call(keyed)
            except RecollectError as error:
                unknown = isinstance(error, UNKNOWN) and operation.spec.replay
                if not (unknown or isinstance(error, NOT_DONE)):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def until_complete(
        self,
        make: Callable[[], Operation[Any]],
        counted: Sequence[str],
        seen: Sequence[str] = (),
    ) -> None:
        """Take step after step until one says that all is done, or one had no effect.

        `counted` names the effects in an answer, `seen` what else of it is added up.
        """
        for _ in range(STEPS_MAX):
            answer: dict[str, Any] = await self.call(make())
            self.add(answer, (*counted, *seen))
            if answer["complete"] or self.dry_run or not any(answer[name] for name in counted):
                break
            await self.tell()
            # Whoever waits for the writer has their turn.
            await asyncio.sleep(BETWEEN_STEPS_S)
        self.counts["complete"] = bool(answer["complete"])

    def page(self, items: int) -> int:
        """How much to ask for in one page, if that is more than the orchestrator gives."""
        return min(items, self.settings.limits.page_items_max)

    def add(self, answer: Any, counted: Iterable[str]) -> None:
        """Add up what a step did, and note by which runs it can be undone."""
        for name in counted:
            self.counts[name] = self.counts.get(name, 0) + answer[name]
        if run_id := answer.get("run_id"):
            self.counts["run_id"] = run_id
            undoable: list[str] = self.counts.setdefault("run_ids", [])
            if run_id not in undoable and len(undoable) < UNDOABLE_MAX:
                undoable.append(run_id)

    async def tell(self, **also: Any) -> None:
        """Say how far it is, not too often; whether that arrives does not matter."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._told_s < TELL_EVERY_S:
            return
        self._told_s = now_s
        progress = {"step": self._steps, **self.counts, **also}
        try:
            await self._client.call(ReportJob(self._run_id, progress, timeout=TELL_TIMEOUT_S))
        except LeaseLost:
            raise
        except RecollectError:
            pass


def _always(settings: Settings) -> bool:
    return True


class Job(NamedTuple):
    """A job: its name, by which its settings are found, and what it does."""

    name: str
    run: Callable[[Work], Awaitable[None]]
    has_work: Callable[[Settings], bool] = _always
    """Whether it can have anything to do, as things are set; if not, its schedule is not kept."""
