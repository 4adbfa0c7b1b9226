"""Lets what has faded go down a tier, and in the end to the archive."""

from __future__ import annotations

from recollect.protocol.operations import FadeMemories
from recollect.scheduler.work import Job, Work

COUNTED = ("to_medium", "to_long", "summarised", "archived")
SEEN = ("kept", "examined")


async def run(work: Work) -> None:
    limit = work.settings.jobs.decay.limit
    await work.until_complete(
        lambda: FadeMemories(limit=limit, dry_run=work.dry_run), COUNTED, SEEN
    )


JOB = Job("decay", run)
