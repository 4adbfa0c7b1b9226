"""All jobs, one a file."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.scheduler.jobs import (
    backup,
    consolidation,
    database_optimise,
    decay,
    document_sync,
    embedding_backfill,
    index_maintenance,
    integrity_check,
    retention,
    tier_migration,
    trimming,
    version_squashing,
)
from recollect.scheduler.work import Job

JOBS: Mapping[str, Job] = {
    module.JOB.name: module.JOB
    for module in (
        decay,
        tier_migration,
        consolidation,
        embedding_backfill,
        index_maintenance,
        version_squashing,
        retention,
        document_sync,
        trimming,
        database_optimise,
        backup,
        integrity_check,
    )
}
