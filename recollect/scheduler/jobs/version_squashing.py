"""Forgets old versions of memories that have newer ones."""

from __future__ import annotations

from functools import partial

from recollect.protocol.operations import SquashVersions
from recollect.scheduler.places import outermost
from recollect.scheduler.work import Job, Work


async def run(work: Work) -> None:
    settings = work.settings.jobs.version_squashing
    for namespace in await outermost(work):
        for memory_type in settings.memory_types:
            step = partial(
                SquashVersions,
                namespace,
                settings.older_than_days,
                memory_type,
                dry_run=work.dry_run,
            )
            await work.until_complete(step, ("memories", "versions"))


JOB = Job("version_squashing", run)
