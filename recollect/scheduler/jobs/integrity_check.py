"""Looks for damage, and fails where it finds some, so that it is heard of."""

from __future__ import annotations

from recollect.protocol.operations import CheckIntegrity
from recollect.scheduler.work import Failed, Job, Work

SHOWN_MAX = 5


async def run(work: Work) -> None:
    found = await work.call(CheckIntegrity(quick=not work.settings.jobs.integrity_check.full))
    problems = found["problems"]
    work.counts["problems"] = len(problems)
    if not found["sound"]:
        told = "; ".join(f"{p['part']}: {p['text']} {p['advice']}" for p in problems[:SHOWN_MAX])
        raise Failed(f"Damage was found. {told}")


JOB = Job("integrity_check", run)
