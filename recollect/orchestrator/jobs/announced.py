"""The jobs that the scheduler has said there are, as they lie in their table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.clock import to_iso_or_none
from recollect.orchestrator.jobs import rows
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import NotFound


class Announced(msgspec.Struct, frozen=True):
    """One row of `jobs`, in the order of its columns."""

    name: str
    description: str
    enabled: int
    schedule: str
    limits: str
    next_us: int | None
    announced_us: int


COLUMNS = ", ".join(Announced.__struct_fields__)
INSERT = Insert("jobs", Announced.__struct_fields__)
ALL = f"SELECT {COLUMNS} FROM jobs ORDER BY name"
FIND = "SELECT name FROM jobs WHERE name = ?"
FORGET = "DELETE FROM jobs"


def exchange(transaction: WriteTransaction, jobs: Sequence[Announced]) -> None:
    """Take these for all that there are."""
    transaction.execute(FORGET)
    transaction.insert(INSERT, [msgspec.structs.astuple(job) for job in jobs])


def check_known(session: Session, job: str) -> None:
    """Refuse a job that no scheduler has."""
    if session.execute(FIND, (job,)):
        return
    known = [row[0] for row in session.execute(ALL)]
    there = (
        f"there are {', '.join(known)}"
        if known
        else "no scheduler has run yet; `recollect up` starts one"
    )
    raise NotFound(f"There is no job {job!r}: {there}.", job=job)


def listed(session: Session) -> list[records.JobRecord]:
    """All jobs with what became of each last."""
    return [_record(session, Announced(*row)) for row in session.execute(ALL)]


def _record(session: Session, job: Announced) -> records.JobRecord:
    last = rows.found(session, rows.LAST, job.name)
    return {
        "name": job.name,
        "description": job.description,
        "enabled": bool(job.enabled),
        "schedule": job.schedule,
        "limits": decode_json(job.limits),
        "next_at": to_iso_or_none(job.next_us),
        "covered_until": to_iso_or_none(rows.covered_until(session, job.name)),
        "last": None if last is None else rows.record_of(last),
    }
