"""Trims what is kept for a while only: answers for retries, receipts, and the journal if asked."""

from __future__ import annotations

from recollect.protocol.operations import TrimAnswers, TrimJournal
from recollect.scheduler.work import Job, Work


async def run(work: Work) -> None:
    settings = work.settings.jobs.trimming
    await work.until_complete(
        lambda: TrimAnswers(limit=settings.limit, dry_run=work.dry_run), ("answers", "receipts")
    )
    days = settings.journal_days
    if days is not None:
        await work.until_complete(
            lambda: TrimJournal(days, limit=settings.limit, dry_run=work.dry_run), ("removed",)
        )


JOB = Job("trimming", run)
