"""Settles what repeats or contradicts, namespace by namespace."""

from __future__ import annotations

from recollect.protocol.errors import LimitExceeded
from recollect.protocol.operations import Consolidate
from recollect.scheduler.places import outermost
from recollect.scheduler.work import Job, Work

SHRINK_MAX = "consolidation.shrink_max"
"""The limit by which a whole namespace is refused."""


async def run(work: Work) -> None:
    settings = work.settings.jobs.consolidation
    work.counts.update(namespaces=0, refused=0)
    for namespace in await outermost(work, settings.namespaces):
        try:
            answer = await work.call(
                Consolidate(
                    namespace, settings.strategy, dry_run=work.dry_run, limit=settings.limit
                )
            )
        except LimitExceeded as error:
            if error.details.get("limit") != SHRINK_MAX:
                raise
            # It would take too much of that namespace at once: somebody should have a look.
            work.counts["refused"] += 1
        else:
            work.add(answer, ("created", "archived", "skipped", "examined"))
            work.counts["refused"] += answer["refusal"] is not None
        work.counts["namespaces"] += 1
        await work.tell(at=namespace)


JOB = Job("consolidation", run)
