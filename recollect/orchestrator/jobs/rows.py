"""Runs of jobs as they lie in their table."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import NotFound

REQUESTED = "requested"
RUNNING = "running"
LOST_WITH_HOLDER = "the scheduler that began it stopped, or lost its lease, before it was done"
TRIM_ROWS = 1_000
OPEN_MAX = 200
"""More cannot be open than each job asked for, dry and not."""


class JobRun(msgspec.Struct, frozen=True):
    """One row of `job_runs`, in the order of its columns."""

    id: str
    job: str
    cause: str
    status: str
    dry_run: int
    requested_by: str | None
    scheduled_us: int | None
    requested_us: int
    started_us: int | None
    ended_us: int | None
    token: int | None
    holder: str | None
    progress: str
    counts: str
    error: str | None


COLUMNS = ", ".join(JobRun.__struct_fields__)
INSERT = Insert("job_runs", JobRun.__struct_fields__)
BY_ID = f"SELECT {COLUMNS} FROM job_runs WHERE id = ?"
BY_MOMENT = f"""
SELECT {COLUMNS} FROM job_runs WHERE job = ? AND scheduled_us = ? AND status <> 'lost'
"""
OPEN = f"""
SELECT {COLUMNS} FROM job_runs WHERE status IN ('requested', 'running')
ORDER BY requested_us, id LIMIT ?
"""
WAITING = f"""
SELECT {COLUMNS} FROM job_runs WHERE status = 'requested' AND job = ? AND dry_run = ? LIMIT 1
"""
LAST = f"""
SELECT {COLUMNS} FROM job_runs WHERE job = ? AND status <> 'requested'
ORDER BY requested_us DESC, id DESC LIMIT 1
"""
COVERED = """
SELECT scheduled_us FROM job_runs
WHERE job = ? AND scheduled_us IS NOT NULL AND status <> 'lost' ORDER BY scheduled_us DESC LIMIT 1
"""
# Only where it never ran otherwise: its history is bounded, and read by its index.
FIRST_LOST = "SELECT min(scheduled_us) FROM job_runs WHERE job = ? AND status = 'lost'"
PAGE = f"""
SELECT {COLUMNS} FROM job_runs WHERE requested_us <= ? AND (requested_us, id) < (?, ?)
ORDER BY requested_us DESC, id DESC LIMIT ?
"""
PAGE_OF_JOB = f"""
SELECT {COLUMNS} FROM job_runs
WHERE job = ? AND requested_us <= ? AND (requested_us, id) < (?, ?)
ORDER BY requested_us DESC, id DESC LIMIT ?
"""
BEGIN = """
UPDATE job_runs SET status = 'running', started_us = ?, token = ?, holder = ?
WHERE id = ? AND status = 'requested'
"""
REPORT = "UPDATE job_runs SET progress = ? WHERE id = ?"
FINISH = "UPDATE job_runs SET status = ?, ended_us = ?, counts = ?, error = ? WHERE id = ?"
# What was only requested has no token; named all the same, because that is what is indexed.
LOSE = """
UPDATE job_runs SET status = 'lost', ended_us = ?, error = ?
WHERE status IN ('requested', 'running') AND token < ?
"""
TRIM = """
DELETE FROM job_runs WHERE id IN (
    SELECT id FROM job_runs WHERE job = ? AND status NOT IN ('requested', 'running')
    ORDER BY requested_us DESC, id DESC LIMIT ? OFFSET ?
)
"""


def find(session: Session, job_run_id: str) -> JobRun:
    """A run by its id."""
    found = session.execute(BY_ID, (job_run_id,))
    if not found:
        raise NotFound(f"There is no run {job_run_id!r} of a job.", job_run_id=job_run_id)
    return JobRun(*found[0])


def found(session: Session, sql: str, *params: Any) -> JobRun | None:
    """The first run that a statement finds, if there is one."""
    rows = session.execute(sql, params)
    return JobRun(*rows[0]) if rows else None


def lose(transaction: WriteTransaction, token: int, now_us: int) -> None:
    """Give up what holders of smaller tokens left at work: they cannot end it any more."""
    transaction.execute(LOSE, (now_us, LOST_WITH_HOLDER, token))


def trim(transaction: WriteTransaction, job: str, kept_max: int) -> None:
    """Forget the oldest runs of a job, a bounded number at a time."""
    transaction.execute(TRIM, (job, TRIM_ROWS, kept_max))


def covered_until(session: Session, job: str) -> int | None:
    """The last moment of its schedule for which a job ran. What was lost is yet to be done: of a
    job that never ran otherwise, it is the moment before the first that was lost."""
    rows = session.execute(COVERED, (job,))
    if rows:
        return int(rows[0][0])
    [(lost_us,)] = session.execute(FIRST_LOST, (job,))
    return None if lost_us is None else int(lost_us) - 1


def record_of(run: JobRun) -> records.JobRunRecord:
    """A run as callers see it."""
    duration_s = None
    if run.started_us is not None and run.ended_us is not None:
        duration_s = max(0, run.ended_us - run.started_us) / 1_000_000
    return {
        "job_run_id": run.id,
        "job": run.job,
        "cause": run.cause,
        "run_status": run.status,
        "dry_run": bool(run.dry_run),
        "requested_by": run.requested_by,
        "scheduled_at": to_iso_or_none(run.scheduled_us),
        "requested_at": to_iso(run.requested_us),
        "started_at": to_iso_or_none(run.started_us),
        "ended_at": to_iso_or_none(run.ended_us),
        "duration_s": duration_s,
        "holder": run.holder,
        "progress": decode_json(run.progress),
        "counts": decode_json(run.counts),
        "error": run.error,
    }
