"""Jobs and their runs, and the leases by which one scheduler at a time does them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

SCHEDULER_LEASE = "scheduler"
"""The lease under which jobs are done."""

LeaseName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9_.:-]{0,63}$(?!\n)",
        description="Name of the lease: small letters, digits and _ . : -",
    ),
]
Holder = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,127}$(?!\n)",
        description="Who holds it: a name that nobody else has.",
    ),
]
Token = Annotated[int, Meta(ge=1, le=fields.INTEGER_MAX, description="The token of the lease.")]
TtlS = Annotated[
    float, Meta(gt=0, le=3600, description="Seconds for which it lasts unless it is renewed.")
]
JobName = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$(?!\n)", description="Name of the job.")
]
JobRunId = Annotated[str, Meta(min_length=1, description="Id of the run of a job.")]


@operation(access="admin", everywhere=True, http=("POST", "/v1/leases"))
class AcquireLease(Operation[records.LeaseAcquired], frozen=True):
    """Take a lease that nobody holds, or whose holder has not renewed it in time.

    A new holder is given a larger token than every one before. A holder that asks anew gets one,
    too: what it began under the old token has no effect from then on."""

    name: LeaseName
    holder: Holder
    ttl_s: TtlS = 15.0


@operation(access="admin", everywhere=True, http=("PUT", "/v1/leases/{name}"))
class RenewLease(Operation[records.LeaseRenewed], frozen=True):
    """Keep a lease for longer; its token stays. `lease_lost` if somebody else has it by now."""

    name: LeaseName
    holder: Holder
    token: Token
    ttl_s: TtlS = 15.0


@operation(access="admin", everywhere=True, http=("DELETE", "/v1/leases/{name}"))
class ReleaseLease(Operation[records.LeaseReleased], frozen=True):
    """Give a lease back, for the next one to take at once."""

    name: LeaseName
    holder: Holder
    token: Token


class JobAnnouncement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a scheduler says of one of its jobs."""

    name: JobName
    description: Annotated[str, Meta(min_length=1, max_length=1000)]
    enabled: bool
    schedule: Annotated[str, Meta(min_length=1, max_length=200)]
    limits: dict[str, Any] = {}
    next_at: str | None = None


@operation(access="admin", everywhere=True, http=("PUT", "/v1/jobs"))
class AnnounceJobs(Operation[records.JobsAnnounced], frozen=True):
    """Say which jobs there are; for the scheduler that holds the lease."""

    jobs: Annotated[list[JobAnnouncement], Meta(description="All of them.")]


@operation(access="admin", everywhere=True, http=("GET", "/v1/jobs"))
class ListJobs(Operation[records.JobsListed], frozen=True):
    """The jobs with their schedules and last runs, what is open, and whether a scheduler lives."""


@operation(access="admin", everywhere=True, http=("POST", "/v1/jobs/{job}/runs"))
class RequestJob(Operation[records.JobRequested], frozen=True):
    """Ask the scheduler to run a job now. The same asked twice before it begins is one run."""

    job: JobName
    dry_run: fields.DryRun = False


class BeginJobOptions(Operation[records.JobBegun], frozen=True, kw_only=True):
    scheduled_at: Annotated[
        str | float | None,
        Meta(description="The moment of the schedule that it is for; a moment has one run."),
    ] = None
    job_run_id: Annotated[
        str | None, Meta(description="Instead of a moment: the run that was requested.")
    ] = None
    cause: Annotated[
        Literal["schedule", "missed"],
        Meta(description="Whether the moment is now, or has passed while no scheduler ran."),
    ] = "schedule"


@operation(access="admin", everywhere=True, http=("POST", "/v1/jobs/{job}:begin"))
class BeginJob(BeginJobOptions, frozen=True):
    """Begin a run; for the scheduler that holds the lease, and fenced by it."""

    job: JobName


@operation(access="admin", everywhere=True, http=("POST", "/v1/job-runs/{job_run_id}:report"))
class ReportJob(Operation[records.JobRunFetched], frozen=True):
    """Say how far a run is; for the scheduler that began it, and fenced by its lease."""

    job_run_id: JobRunId
    progress: Annotated[dict[str, Any], Meta(description="Counts so far, and what it is at.")]


class FinishJobOptions(Operation[records.JobRunFetched], frozen=True, kw_only=True):
    counts: Annotated[
        dict[str, Any] | None, Meta(description="What it did, with the run_id of what it can undo.")
    ] = None
    error: Annotated[str | None, Meta(description="Why it failed.")] = None


@operation(access="admin", everywhere=True, http=("POST", "/v1/job-runs/{job_run_id}:finish"))
class FinishJob(FinishJobOptions, frozen=True):
    """Say how a run ended; for the scheduler that began it, and fenced by its lease."""

    job_run_id: JobRunId
    run_status: Annotated[
        Literal["done", "failed", "timed_out", "skipped"], Meta(description="How it ended.")
    ]


@operation(access="admin", everywhere=True, http=("GET", "/v1/job-runs/{job_run_id}"))
class GetJobRun(Operation[records.JobRunFetched], frozen=True):
    """A run of a job, with its progress or what it did."""

    job_run_id: JobRunId


class JobHistoryOptions(Operation[records.JobHistory], frozen=True, kw_only=True):
    cursor: fields.Cursor = None


@operation(access="admin", everywhere=True, http=("GET", "/v1/job-runs"))
class JobHistory(JobHistoryOptions, frozen=True):
    """Runs of jobs, the latest first."""

    job: Annotated[str | None, Meta(description="Only runs of this job.")] = None
    limit: fields.Limit = 50
