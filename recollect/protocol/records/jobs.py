"""The shapes of leases, jobs and their runs."""

from __future__ import annotations

from typing import Any, TypedDict


class LeaseAcquired(TypedDict):
    status: str
    acquired: bool
    holder: str
    """Who holds it now: whoever asked, or whoever keeps it from them."""
    token: int | None
    """By which the writes of the new holder are fenced; none if it was not acquired."""
    expires_at: str


class LeaseRenewed(TypedDict):
    status: str
    holder: str
    token: int
    expires_at: str


class LeaseReleased(TypedDict):
    status: str
    released: bool
    seq: int


class JobRunRecord(TypedDict):
    """`cause` is schedule, request or missed; `run_status` is requested, running, done, failed,
    timed_out, skipped or lost."""

    job_run_id: str
    job: str
    cause: str
    run_status: str
    dry_run: bool
    requested_by: str | None
    scheduled_at: str | None
    """The moment of the schedule that it is for."""
    requested_at: str
    started_at: str | None
    ended_at: str | None
    duration_s: float | None
    holder: str | None
    """The scheduler that began it."""
    progress: dict[str, Any]
    counts: dict[str, Any]
    """What it did, in numbers; with the `run_id` of what can be undone."""
    error: str | None


class JobRecord(TypedDict):
    name: str
    description: str
    enabled: bool
    schedule: str
    limits: dict[str, Any]
    next_at: str | None
    """When it is due next by its schedule."""
    covered_until: str | None
    """The last moment of its schedule for which it ran; none if it never did."""
    last: JobRunRecord | None


class SchedulerState(TypedDict):
    alive: bool
    holder: str | None
    renewed_at: str | None
    expires_at: str | None


class JobsListed(TypedDict):
    status: str
    jobs: list[JobRecord]
    count: int
    scheduler: SchedulerState
    open: list[JobRunRecord]
    """Runs that wait or are at work, in their order."""


class JobsAnnounced(TypedDict):
    status: str
    jobs: int


class JobRequested(TypedDict):
    status: str
    job_run_id: str


class JobBegun(TypedDict):
    status: str
    begun: bool
    """Whether it is to be done now; if not, somebody has seen to it, as the run tells."""
    run: JobRunRecord


class JobRunFetched(TypedDict):
    status: str
    run: JobRunRecord


class JobHistory(TypedDict):
    status: str
    runs: list[JobRunRecord]
    count: int
    cursor: str | None
