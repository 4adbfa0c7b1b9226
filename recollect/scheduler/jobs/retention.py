"""Deletes what has expired, and purges what was deleted or archived long ago."""

from __future__ import annotations

from recollect.protocol.operations import ApplyRetention
from recollect.scheduler.work import Job, Work

COUNTED = ("expired", "purged_deleted", "purged_archived")


async def run(work: Work) -> None:
    settings = work.settings.jobs.retention
    await work.until_complete(
        lambda: ApplyRetention(
            deleted_days=settings.deleted_days,
            archived_days=settings.archived_days,
            limit=settings.limit,
            dry_run=work.dry_run,
        ),
        COUNTED,
    )


JOB = Job("retention", run)
