"""What is to be run, one at a time: what somebody asked for first, then what is due.

One job at a time is enough, since all of them wait for the same writer in the end; and so a job
that hangs can be cut off by taking the lease anew, without cutting off another.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from msgspec import Struct


class Due(Struct, frozen=True):
    """A run to be: for a moment of its schedule, or because somebody asked for it."""

    job: str
    moment: datetime | None = None
    cause: Literal["schedule", "missed"] = "schedule"
    job_run_id: str | None = None


class DueRuns:
    """A queue without doubles. Lives on the event loop."""

    def __init__(self) -> None:
        self._requested: dict[str, Due] = {}
        self._scheduled: dict[str, Due] = {}
        self._filled = asyncio.Event()

    def add(self, due: Due) -> None:
        """Put a run in its place. Of one job, only the latest moment waits: it is for all of those
        before it, too."""
        if due.job_run_id is not None:
            self._requested.setdefault(due.job_run_id, due)
        else:
            waiting = self._scheduled.get(due.job)
            if waiting is None or _moment(waiting) <= _moment(due):
                self._scheduled[due.job] = due
        self._filled.set()

    async def take(self) -> Due:
        """The next one, as soon as there is one."""
        while not (self._requested or self._scheduled):
            self._filled.clear()
            await self._filled.wait()
        queue = self._requested or self._scheduled
        return queue.pop(next(iter(queue)))


def _moment(due: Due) -> datetime:
    assert due.moment is not None, "what nobody asked for is due at a moment"
    return due.moment
