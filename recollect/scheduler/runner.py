"""Carries out one run: begun, worked on within its time, ended, and told of."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import structlog

from recollect.client import AsyncMemoryClient
from recollect.config import Settings
from recollect.config.scheduling import JobSettings
from recollect.protocol.errors import LeaseLost, RecollectError
from recollect.protocol.operation import Operation
from recollect.protocol.operations import BeginJob, ErrorReport, FinishJob
from recollect.protocol.records import JobRunRecord
from recollect.scheduler.due import Due
from recollect.scheduler.leadership import Leadership
from recollect.scheduler.work import PAUSE_S, PAUSE_S_MAX, Failed, Job, Skipped, Work

log = structlog.get_logger()
R = TypeVar("R")

SOURCE = "scheduler"
CALL_S = 5.0
ERROR_CHARS_MAX = 2000


class Outcome(NamedTuple):
    """How a run ended."""

    status: Any
    error: str | None = None


class Runner:
    """Runs jobs under the lease. Lives on the event loop."""

    def __init__(
        self,
        fenced: AsyncMemoryClient,
        leadership: Leadership,
        settings: Settings,
        jobs: Mapping[str, Job],
    ) -> None:
        self._client = fenced
        self._leadership = leadership
        self._settings = settings
        self._jobs = jobs

    async def run(self, due: Due) -> None:
        """Do what is due, unless it was done. Raises LeaseLost."""
        begun = await self._insist(
            BeginJob(
                due.job,
                scheduled_at=None if due.moment is None else due.moment.isoformat(),
                job_run_id=due.job_run_id,
                cause=due.cause,
                timeout=CALL_S,
            )
        )
        if not begun["begun"]:
            return
        run = begun["run"]
        limit_s = settings_of(self._settings, due.job).time_limit_s
        work = Work(self._client, run, self._settings, limit_s)
        outcome = await self._work(self._jobs[due.job], work, limit_s)
        await self._insist(
            FinishJob(
                run["job_run_id"],
                outcome.status,
                counts=work.counts,
                error=None if outcome.error is None else outcome.error[:ERROR_CHARS_MAX],
                timeout=CALL_S,
            )
        )
        log.info(
            "A run ended.",
            action="job",
            job=due.job,
            run=run["job_run_id"],
            outcome=outcome.status,
            error=outcome.error,
            counts=work.counts,
        )
        if outcome.status == "timed_out":
            # The step that hangs may still come to its end; it is not to write anything then.
            await self._leadership.take_anew()
        if outcome.status in ("timed_out", "failed"):
            await self._report(run, outcome)

    async def _work(self, job: Job, work: Work, limit_s: float) -> Outcome:
        try:
            async with asyncio.timeout(limit_s) as bound:
                await job.run(work)
        except TimeoutError:
            if not bound.expired():
                raise
            return Outcome("timed_out", f"It was stopped after {limit_s:g} s, its time limit.")
        except Skipped as skipped:
            return Outcome("skipped", str(skipped))
        except Failed as failed:
            return Outcome("failed", str(failed))
        except LeaseLost:
            raise
        except RecollectError as error:
            return Outcome("failed", f"{error.message} ({error.code})")
        except Exception as error:
            log.exception("A job failed by a defect.", action="job", job=job.name)
            return Outcome("failed", f"It failed by a defect ({type(error).__name__}).")
        return Outcome("done")

    async def _insist(self, operation: Operation[R]) -> R:
        """The answer to what must be known, however long the orchestrator is away."""
        pause_s = PAUSE_S
        while True:
            try:
                return await self._client.call(operation)
            except RecollectError as error:
                if not error.retryable:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _report(self, run: JobRunRecord, outcome: Outcome) -> None:
        """Tell the error bus; the history has it anyway."""
        report = ErrorReport(
            code=f"job_{outcome.status}",
            message=f"{run['job']}: {outcome.error}"[:ERROR_CHARS_MAX],
            context={"job": run["job"], "job_run_id": run["job_run_id"]},
        )
        try:
            await self._client.report_errors(SOURCE, [report], timeout=CALL_S)
        except RecollectError as error:
            log.warning("An error was not reported.", action="job", reason=error.message)


def settings_of(settings: Settings, job: str) -> JobSettings:
    """The settings that every job has."""
    found: JobSettings = getattr(settings.jobs, job)
    return found
