"""How runs of jobs come about: asked for by somebody, or due by a schedule; and that each is begun
by one scheduler alone."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.calls import Call, Fence
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.jobs import announced, leases, rows
from recollect.orchestrator.jobs.rows import JobRun
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.errors import InvalidArgument, NotFound
from recollect.protocol.operations import SCHEDULER_LEASE


def fence_of(call: Call) -> Fence:
    """The fence that the scheduler's own calls must carry."""
    fence = call.fence
    if fence is None or fence.name != SCHEDULER_LEASE:
        raise InvalidArgument(
            f"{call.operation} is done under the lease {SCHEDULER_LEASE!r}: acquire it, and say so "
            "with set_fence.",
            field="fence",
        )
    return fence


class Beginning:
    """Enters runs. Used by the writer's thread alone."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    def request(self, call: Call, transaction: WriteTransaction, job: str, dry_run: bool) -> JobRun:
        """A run that waits for the scheduler: the one that waits already, or a new one."""
        announced.check_known(transaction, job)
        waiting = rows.found(transaction, rows.WAITING, job, int(dry_run))
        if waiting is not None:
            return waiting
        run = JobRun(
            id=self._ids.new(),
            job=job,
            cause="request",
            status=rows.REQUESTED,
            dry_run=int(dry_run),
            requested_by=call.author,
            scheduled_us=None,
            requested_us=call.now_us,
            started_us=None,
            ended_us=None,
            token=None,
            holder=None,
            progress="{}",
            counts="{}",
            error=None,
        )
        transaction.insert(rows.INSERT, [msgspec.structs.astuple(run)])
        return run

    def requested(
        self, call: Call, transaction: WriteTransaction, job: str, job_run_id: str
    ) -> tuple[JobRun, bool]:
        """Begin a run that was asked for; whether whoever asks is the one to do it."""
        token, holder = self._holder(call, transaction)
        run = rows.find(transaction, job_run_id)
        if run.job != job:
            raise NotFound(f"There is no run {job_run_id!r} of {job}.", job_run_id=job_run_id)
        if run.status == rows.REQUESTED:
            transaction.execute(rows.BEGIN, (call.now_us, token, holder, run.id))
            run = rows.find(transaction, job_run_id)
        return run, _is_begun(run, token)

    def scheduled(
        self, call: Call, transaction: WriteTransaction, job: str, moment_us: int, cause: str
    ) -> tuple[JobRun, bool]:
        """Begin the run of a moment, unless that moment has had its run."""
        token, holder = self._holder(call, transaction)
        announced.check_known(transaction, job)
        known = rows.found(transaction, rows.BY_MOMENT, job, moment_us)
        if known is not None:
            return known, _is_begun(known, token)
        run = JobRun(
            id=self._ids.new(),
            job=job,
            cause=cause,
            status=rows.RUNNING,
            dry_run=0,
            requested_by=None,
            scheduled_us=moment_us,
            requested_us=call.now_us,
            started_us=call.now_us,
            ended_us=None,
            token=token,
            holder=holder,
            progress="{}",
            counts="{}",
            error=None,
        )
        transaction.insert(rows.INSERT, [msgspec.structs.astuple(run)])
        return run, True

    def _holder(self, call: Call, transaction: WriteTransaction) -> tuple[int, str | None]:
        lease = leases.find(transaction, SCHEDULER_LEASE)
        return fence_of(call).token, None if lease is None else lease.holder


def _is_begun(run: JobRun, token: int) -> bool:
    """Whether a run is at work in the hands of this holder: its first answer may have been lost."""
    return run.status == rows.RUNNING and run.token == token
