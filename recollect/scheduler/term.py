"""One term at work: from the lease being taken until it is lost or given back.

Three things go on beside each other: the lease is kept, what somebody asks for is looked for, and
what is due is run. Schedules are watched by APScheduler; what it says is due goes into the queue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from recollect.config import Settings
from recollect.config.declarations import section_help
from recollect.protocol.errors import LeaseLost, RecollectError
from recollect.protocol.operations import JobAnnouncement
from recollect.protocol.records import JobsListed
from recollect.scheduler.connecting import Lines
from recollect.scheduler.due import Due, DueRuns
from recollect.scheduler.jobs import JOBS
from recollect.scheduler.leadership import Leadership
from recollect.scheduler.runner import Runner, settings_of
from recollect.scheduler.triggers import last_moment, next_moment, trigger_of

log = structlog.get_logger()

CALL_S = 5.0
# By so much the clock must go back for the schedules to be read anew.
BACK_MIN = timedelta(minutes=1)


def utc_now() -> datetime:
    """What the clock on the wall says."""
    return datetime.now(UTC)


class Term:
    """What a scheduler does while it holds the lease. Lives on the event loop."""

    def __init__(
        self,
        lines: Lines,
        leadership: Leadership,
        settings: Settings,
        *,
        now: Callable[[], datetime] = utc_now,
        randomness: random.Random | None = None,
        triggers: Mapping[str, BaseTrigger] | None = None,
    ) -> None:
        """`triggers` stand in the place of those that the schedules make."""
        self._client = lines.plain
        self._fenced = lines.fenced
        self._leadership = leadership
        self._settings = settings
        self._now = now
        self._randomness = randomness or random.Random()
        self._runner = Runner(lines.fenced, leadership, settings, JOBS)
        self._due = DueRuns()
        self._triggers: dict[str, BaseTrigger] = {
            name: trigger_of(settings_of(settings, name).schedule, settings.scheduler.timezone)
            for name in JOBS
        } | dict(triggers or {})
        # Up to which moment of its schedule each job ran, or is about to.
        self._covered: dict[str, datetime] = {}
        self._announced: list[JobAnnouncement] = []

    async def serve(self) -> None:
        """Work until cancelled, or until the lease is lost: then it raises LeaseLost."""
        keeping = asyncio.create_task(self._leadership.keep())
        working = asyncio.create_task(self._work())
        tasks = (keeping, working)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        await self._until_done(self._announce)
        await self._until_done(self._catch_up)
        watch = AsyncIOScheduler(timezone=UTC)
        self._arm(watch)
        watch.start()
        looking = asyncio.create_task(self._look(watch))
        try:
            while True:
                due = await self._due.take()
                try:
                    await self._runner.run(due)
                except LeaseLost:
                    raise
                except RecollectError as error:
                    log.error(
                        "A run was not begun, or how it ended was not noted.",
                        action="job",
                        reason=error.message,
                    )
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            watch.shutdown(wait=False)

    async def _until_done(self, work: Callable[[], Any]) -> None:
        """Do something that needs the orchestrator, however long it is away."""
        while True:
            try:
                await work()
                return
            except LeaseLost:
                raise
            except RecollectError as error:
                log.warning("The orchestrator is away.", action="begin", reason=error.message)
                if not error.retryable:
                    raise
            await asyncio.sleep(self._leadership.interval_s)

    async def _catch_up(self) -> None:
        """Find what was missed while no scheduler ran: one run for all that one job missed."""
        now = self._now()
        listed = await self._client.list_jobs(timeout=CALL_S)
        for job in listed["jobs"]:
            name = job["name"]
            self._covered[name] = now
            if job["covered_until"] is None or not self._enabled(name):
                continue
            since = datetime.fromisoformat(job["covered_until"])
            if moment := last_moment(self._triggers[name], since, now):
                self._due.add(Due(name, moment, "missed"))
        self._take_requests(listed)

    def _arm(self, watch: AsyncIOScheduler) -> None:
        """Have the schedules watched."""
        for name, trigger in self._triggers.items():
            if self._enabled(name):
                watch.add_job(
                    partial(self._fire, name),
                    trigger,
                    id=name,
                    # However late, and however many moments passed: once.
                    misfire_grace_time=None,
                    coalesce=True,
                    max_instances=2,
                    replace_existing=True,
                )

    async def _fire(self, name: str) -> None:
        """A schedule has come to a moment."""
        now = self._now()
        moment = last_moment(self._triggers[name], self._covered.get(name, now), now)
        if moment is None:
            return
        self._covered[name] = moment
        await asyncio.sleep(self._randomness.uniform(0, self._settings.scheduler.jitter_s_max))
        self._due.add(Due(name, moment))

    async def _look(self, watch: AsyncIOScheduler) -> None:
        """Look, again and again, for what somebody asked for; keep what was announced current."""
        before = self._now()
        while True:
            await asyncio.sleep(self._settings.scheduler.poll_s)
            now = self._now()
            if now < before - BACK_MIN:
                # The clock was put back: moments that it will show again have had their runs.
                self._covered = {name: min(at, now) for name, at in self._covered.items()}
                self._arm(watch)
            before = now
            # Asleep, it would not notice a clock that was put forward.
            watch.wakeup()
            try:
                self._take_requests(await self._client.list_jobs(timeout=CALL_S))
                await self._announce()
            except RecollectError as error:
                # Also a lost lease: it is kept, and noticed, elsewhere.
                log.debug("Nothing was asked for.", action="look", reason=error.message)

    def _take_requests(self, listed: JobsListed) -> None:
        for run in listed["open"]:
            if run["run_status"] == "requested" and run["job"] in JOBS:
                self._due.add(Due(run["job"], job_run_id=run["job_run_id"]))

    async def _announce(self) -> None:
        """Say which jobs there are and when each comes next, if that has changed."""
        now = self._now()
        jobs = [self._announcement(name, now) for name in JOBS]
        if jobs != self._announced:
            await self._fenced.announce_jobs(jobs, timeout=CALL_S)
            self._announced = jobs

    def _announcement(self, name: str, now: datetime) -> JobAnnouncement:
        settings = settings_of(self._settings, name)
        enabled = self._enabled(name)
        moment = next_moment(self._triggers[name], now) if enabled else None
        limits: dict[str, Any] = {"time_limit_s": settings.time_limit_s}
        if (limit := getattr(settings, "limit", None)) is not None:
            limits["limit"] = limit
        return JobAnnouncement(
            name=name,
            description=section_help(f"jobs.{name}"),
            enabled=enabled,
            schedule=settings.schedule,
            limits=limits,
            next_at=None if moment is None else moment.astimezone(UTC).isoformat(),
        )

    def _enabled(self, name: str) -> bool:
        job = JOBS.get(name)
        if job is None or not job.has_work(self._settings):
            return False
        return settings_of(self._settings, name).enabled
