"""Keeps a copy of the whole store, and the newest few of such copies."""

from __future__ import annotations

from recollect.protocol.operations import KeepBackup
from recollect.scheduler.work import Job, Skipped, Work


async def run(work: Work) -> None:
    if work.dry_run:
        raise Skipped("A backup changes nothing: there is nothing to try without making it.")
    kept = await work.call(KeepBackup(keep=work.settings.jobs.backup.keep))
    work.counts.update(
        bytes=kept["bytes"], seq=kept["seq"], removed=kept["removed"], path=kept["path"]
    )


JOB = Job("backup", run)
