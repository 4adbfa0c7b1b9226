"""Moves what is no longer of the moment on to the next tier."""

from __future__ import annotations

from recollect.protocol.operations import Migrate
from recollect.scheduler.work import Job, Work

COUNTED = ("to_working", "to_longterm", "summarised")


async def run(work: Work) -> None:
    limit = work.settings.jobs.tier_migration.limit
    await work.until_complete(
        lambda: Migrate(dry_run=work.dry_run, limit=limit), COUNTED, ("examined",)
    )


JOB = Job("tier_migration", run)
