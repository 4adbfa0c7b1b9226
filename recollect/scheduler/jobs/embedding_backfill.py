"""Gives vectors to memories that were stored while the embedder was away."""

from __future__ import annotations

from recollect.protocol.operations import BackfillEmbeddings, Stats
from recollect.scheduler.work import STEPS_MAX, Job, Work


async def run(work: Work) -> None:
    if work.dry_run:
        stats = await work.call(Stats())
        work.counts["waiting"] = stats["embedding"]["waiting"]
        return
    limit = work.settings.jobs.embedding_backfill.limit
    for _ in range(STEPS_MAX):
        answer = await work.call(BackfillEmbeddings(limit=limit))
        work.add(answer, ("embedded",))
        work.counts["waiting"] = answer["waiting"]
        if answer["reason"]:
            work.counts["reason"] = answer["reason"]
        if not answer["waiting"] or not answer["embedded"]:
            break
        await work.tell()


JOB = Job("embedding_backfill", run)
