"""Jobs: what the scheduler says of them, what it is asked for, and what became of each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.orchestrator.calls import Call, reads, record, writes
from recollect.orchestrator.clock import parse_moment, to_iso
from recollect.orchestrator.jobs import announced, leases, rows
from recollect.orchestrator.jobs.announced import Announced
from recollect.orchestrator.jobs.beginning import Beginning, fence_of
from recollect.orchestrator.jobs.rows import JobRun
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument, LeaseLost, LimitExceeded
from recollect.protocol.operations import (
    SCHEDULER_LEASE,
    AnnounceJobs,
    BeginJob,
    FinishJob,
    GetJobRun,
    JobAnnouncement,
    JobHistory,
    ListJobs,
    ReportJob,
    RequestJob,
)
from recollect.protocol.operations.fields import INTEGER_MAX

JOBS_MAX = 100
LAST_PAGE = ["", INTEGER_MAX]

Write = Callable[[WriteTransaction], records.JobRunFetched]


class JobService:
    """Keeps what schedulers do. The audit has who asked for a run; what a run changed is in it by
    the operations that did it, so that a job that finds nothing to do leaves nothing there."""

    def __init__(
        self, storage: Storage, beginning: Beginning, validator: Validator, history_max: int
    ) -> None:
        self._storage = storage
        self._beginning = beginning
        self._validator = validator
        self._history_max = history_max

    @writes(AnnounceJobs)
    def announce_jobs(
        self, call: Call, operation: AnnounceJobs
    ) -> Callable[[WriteTransaction], records.JobsAnnounced]:
        fence_of(call)
        if len(operation.jobs) > JOBS_MAX:
            raise LimitExceeded(
                f"jobs has {len(operation.jobs):,} items; the limit jobs_max is {JOBS_MAX}.",
                field="jobs",
                limit="jobs_max",
                maximum=JOBS_MAX,
            )
        if len({job.name for job in operation.jobs}) < len(operation.jobs):
            raise InvalidArgument("jobs names one twice.", field="jobs")
        jobs = [self._announced(job, call.now_us) for job in operation.jobs]

        def write(transaction: WriteTransaction) -> records.JobsAnnounced:
            announced.exchange(transaction, jobs)
            return {"status": "success", "jobs": len(jobs)}

        return write

    def _announced(self, job: JobAnnouncement, now_us: int) -> Announced:
        return Announced(
            name=job.name,
            description=self._validator.prose("description", job.description, "item_chars_max"),
            enabled=int(job.enabled),
            schedule=self._validator.text("schedule", job.schedule, "key_chars_max"),
            limits=self._validator.metadata(job.limits, "limits"),
            next_us=parse_moment("next_at", job.next_at),
            announced_us=now_us,
        )

    @reads(ListJobs)
    def list_jobs(self, call: Call, operation: ListJobs) -> asyncio.Future[records.JobsListed]:
        def read(session: Session) -> records.JobsListed:
            jobs = announced.listed(session)
            opened = session.execute(rows.OPEN, (rows.OPEN_MAX,))
            return {
                "status": "success",
                "jobs": jobs,
                "count": len(jobs),
                "scheduler": _scheduler(session, call.now_us),
                "open": [rows.record_of(JobRun(*row)) for row in opened],
            }

        return self._storage.read(read)

    @writes(RequestJob)
    def request_job(
        self, call: Call, operation: RequestJob
    ) -> Callable[[WriteTransaction], records.JobRequested]:
        def write(transaction: WriteTransaction) -> records.JobRequested:
            run = self._beginning.request(call, transaction, operation.job, operation.dry_run)
            detail = f"{operation.job}, dry" if operation.dry_run else operation.job
            record(call, transaction, subject=run.id, detail=detail)
            return {"status": "success", "job_run_id": run.id}

        return write

    @writes(BeginJob)
    def begin_job(
        self, call: Call, operation: BeginJob
    ) -> Callable[[WriteTransaction], records.JobBegun]:
        fence_of(call)
        moment_us = parse_moment("scheduled_at", operation.scheduled_at)
        if (moment_us is None) == (operation.job_run_id is None):
            raise InvalidArgument(
                "begin_job takes either scheduled_at or job_run_id.", field="scheduled_at"
            )

        def write(transaction: WriteTransaction) -> records.JobBegun:
            if operation.job_run_id is not None:
                run, begun = self._beginning.requested(
                    call, transaction, operation.job, operation.job_run_id
                )
            else:
                assert moment_us is not None
                run, begun = self._beginning.scheduled(
                    call, transaction, operation.job, moment_us, operation.cause
                )
            return {"status": "success", "begun": begun, "run": rows.record_of(run)}

        return write

    @writes(ReportJob)
    def report_job(self, call: Call, operation: ReportJob) -> Write:
        token = fence_of(call).token
        progress = self._validator.metadata(operation.progress, "progress")

        def write(transaction: WriteTransaction) -> records.JobRunFetched:
            run = _own(transaction, operation.job_run_id, token)
            if run.status == rows.RUNNING:
                transaction.execute(rows.REPORT, (progress, run.id))
            return _fetched(transaction, run.id)

        return write

    @writes(FinishJob)
    def finish_job(self, call: Call, operation: FinishJob) -> Write:
        token = fence_of(call).token
        counts = self._validator.metadata(operation.counts, "counts")
        error = operation.error
        if error is not None:
            error = self._validator.prose("error", error, "item_chars_max")

        def write(transaction: WriteTransaction) -> records.JobRunFetched:
            run = _own(transaction, operation.job_run_id, token)
            if run.status == rows.RUNNING:
                values = (operation.run_status, call.now_us, counts, error, run.id)
                transaction.execute(rows.FINISH, values)
                rows.trim(transaction, run.job, self._history_max)
            return _fetched(transaction, run.id)

        return write

    @reads(GetJobRun)
    def get_job_run(
        self, call: Call, operation: GetJobRun
    ) -> asyncio.Future[records.JobRunFetched]:
        return self._storage.read(lambda session: _fetched(session, operation.job_run_id))

    @reads(JobHistory)
    def job_history(self, call: Call, operation: JobHistory) -> asyncio.Future[records.JobHistory]:
        limit = self._validator.page(operation.limit)
        last_id, requested_us = read_cursor(operation, operation.cursor, 2, texts=1) or LAST_PAGE
        position = (requested_us, requested_us, last_id, limit + 1)
        if operation.job is not None:
            self._validator.asked("job", operation.job, "key_chars_max")

        def read(session: Session) -> records.JobHistory:
            if operation.job is None:
                found = session.execute(rows.PAGE, position)
            else:
                found = session.execute(rows.PAGE_OF_JOB, (operation.job, *position))
            runs = [JobRun(*row) for row in found[:limit]]
            more = len(found) > limit
            last = [runs[-1].id, runs[-1].requested_us] if more else []
            return {
                "status": "success",
                "runs": [rows.record_of(run) for run in runs],
                "count": len(runs),
                "cursor": make_cursor(operation, last) if more else None,
            }

        return self._storage.read(read)


def _own(session: Session, job_run_id: str, token: int) -> JobRun:
    """A run of the caller; one that was begun under another token is not theirs any more."""
    run = rows.find(session, job_run_id)
    if run.token != token:
        raise LeaseLost(
            f"The run {job_run_id} was not begun under the token {token}.",
            job_run_id=job_run_id,
            token=token,
        )
    return run


def _fetched(session: Session, job_run_id: str) -> records.JobRunFetched:
    return {"status": "success", "run": rows.record_of(rows.find(session, job_run_id))}


def _scheduler(session: Session, now_us: int) -> records.SchedulerState:
    lease = leases.find(session, SCHEDULER_LEASE)
    if lease is None or not lease.held:
        return {"alive": False, "holder": None, "renewed_at": None, "expires_at": None}
    return {
        "alive": now_us < lease.expires_us,
        "holder": lease.holder,
        "renewed_at": to_iso(lease.renewed_us),
        "expires_at": to_iso(lease.expires_us),
    }
