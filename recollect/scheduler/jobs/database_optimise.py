"""Brings the statistics of the database up to date and its log into its file."""

from __future__ import annotations

from recollect.protocol.operations import OptimiseStorage
from recollect.scheduler.work import STEPS_MAX, Job, Skipped, Work


async def run(work: Work) -> None:
    if work.dry_run:
        raise Skipped("It changes nothing that is stored: there is nothing to try.")
    for _ in range(STEPS_MAX):
        done = await work.call(OptimiseStorage())
        work.counts.setdefault("before_bytes", done["before_bytes"])
        work.counts.update(after_bytes=done["after_bytes"], log_bytes=done["log_bytes"])
        if done["complete"] or not done["merged_steps"]:
            break
        await work.tell()


JOB = Job("database_optimise", run)
