"""What a scheduler leaves in the store: its jobs, and runs of them with every kind of outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from recollect import MemoryClient
from recollect.protocol.operations import JobAnnouncement

JOBS = (
    ("consolidation", "Settle what says the same twice.", "30 4 * * *", True),
    ("decay", "Let memories fade and move to colder tiers.", "*/15 * * * *", True),
    ("retention", "Remove what has expired or was deleted long ago.", "10 3 * * *", True),
    ("backup", "Keep a copy of the store, and drop the oldest.", "0 2 * * *", False),
)
HOME = "project:bakery"
SAME = "The oven of the bakery is cleaned every Monday at noon"


def leave_jobs(client: MemoryClient, *, ttl_s: float = 3600.0) -> str:
    """Act as a scheduler for a while; the id of a run that can be undone."""
    lease = client.acquire_lease("scheduler", "scheduler-1", ttl_s)
    assert lease["token"] is not None
    client.set_fence("scheduler", lease["token"])
    now = datetime.now(UTC)
    client.announce_jobs(
        [
            JobAnnouncement(
                name,
                what,
                enabled,
                schedule,
                {"timeout_s": 600},
                (now + timedelta(hours=place + 1)).isoformat(),
            )
            for place, (name, what, schedule, enabled) in enumerate(JOBS)
        ]
    )
    _run(client, "retention", now - timedelta(hours=9), {"expired": 3, "purged_deleted": 12})
    _run(client, "backup", now - timedelta(hours=7), {}, "The disk is <b>full</b>.")
    _run(client, "decay", now - timedelta(hours=2), {"examined": 1200, "to_medium": 41})
    for source in ("log", "chat"):
        client.add_memory(SAME, namespace=HOME, source=source)
    client.clear_fence()
    settled = client.consolidate(HOME, "keep_latest")
    client.set_fence("scheduler", lease["token"])
    counts = {"archived": settled["archived"], "run_id": settled["run_id"]}
    _run(client, "consolidation", now - timedelta(minutes=20), counts)
    client.clear_fence()
    assert settled["run_id"] is not None
    return settled["run_id"]


def _run(
    client: MemoryClient,
    job: str,
    at: datetime,
    counts: dict[str, Any],
    error: str | None = None,
) -> None:
    begun = client.begin_job(job, scheduled_at=at.isoformat())
    run_id = begun["run"]["job_run_id"]
    client.finish_job(run_id, "failed" if error else "done", counts=counts, error=error)
