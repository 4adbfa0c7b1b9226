"""Seals, merges and compacts the vector index, and compares it with the rows."""

from __future__ import annotations

from recollect.protocol.operations import CheckIndex, MaintainIndex
from recollect.scheduler.work import Job, Work


async def run(work: Work) -> None:
    done = await work.call(MaintainIndex(dry_run=work.dry_run))
    work.add(done, ("sealed", "merged", "compacted"))
    await work.tell(at="comparing")
    found = await work.call(CheckIndex(repair=not work.dry_run))
    work.add(found, ("missing", "surplus", "repaired"))
    work.counts.update(segments=done["segments"], vectors=found["vectors"])


JOB = Job("index_maintenance", run)
