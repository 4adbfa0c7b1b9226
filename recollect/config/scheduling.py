"""Settings of the scheduler and of its jobs.

Declared like all others, see settings.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

# fmt: off


class SchedulerSettings(Struct, frozen=True):
    """The process that runs the jobs. Of several, one does and the others stand by."""

    lease_ttl_s: Annotated[float, Meta(ge=0.1, le=3600, description=(
        "Another scheduler takes over when the one at work has not been heard of for so long."
        ))] = 15.0
    poll_s: Annotated[float, Meta(ge=0.05, le=60, description=(
        "How often it looks for runs that somebody asked for."))] = 1.0
    jitter_s_max: Annotated[float, Meta(ge=0, le=3600, description=(
        "A job begins up to so much after its moment, by chance, so that the jobs of one moment "
        "do not all begin at once."))] = 2.0
    history_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Runs of one job that are kept; the oldest make room."))] = 500
    timezone: Annotated[str, Meta(min_length=1, description=(
        "In which the schedules are read, such as `Europe/Berlin`."))] = "UTC"


class JobSettings(Struct, frozen=True):
    """When a job runs, and for how long at most."""

    enabled: Annotated[bool, Meta(description=(
        "Run it by its schedule; otherwise only when it is asked for."))] = True
    schedule: Annotated[str, Meta(min_length=1, description=(
        "A cron expression of five fields, or @hourly, @daily, @weekly, @monthly."))] = "@hourly"
    time_limit_s: Annotated[float, Meta(gt=0, le=86_400, description=(
        "It is stopped when it takes longer, and that is reported."))] = 600.0


class SteppedJobSettings(JobSettings, frozen=True):
    """The same, for a job that goes on in steps until all is done."""

    limit: Annotated[int, Meta(ge=1, le=100_000, description=(
        "How much one step does at most; between steps others have their turn."))] = 1_000


class ConsolidationJobSettings(JobSettings, frozen=True):
    """The same, for the job that settles conflicts."""

    limit: Annotated[int, Meta(ge=1, le=100_000, description=(
        "How many conflicts are settled in each namespace."))] = 20
    strategy: Annotated[Literal["keep_latest", "keep_most_trusted", "merge", "llm_based"], Meta(
        description="How they are settled; see docs/consolidation.md.")] = "keep_latest"
    namespaces: Annotated[tuple[str, ...], Meta(description=(
        "Only in these namespaces and those below them; in all if there are none here."))] = ()


class VersionSquashingJobSettings(JobSettings, frozen=True):
    """The same, for the job that forgets old versions."""

    older_than_days: Annotated[float, Meta(ge=0, le=36_500, description=(
        "Only versions that were superseded so long ago."))] = 90.0
    memory_types: Annotated[tuple[str, ...], Meta(description=(
        "Only of memories of these types."))] = ("episodic",)


class RetentionJobSettings(SteppedJobSettings, frozen=True):
    """The same, for the job that removes what has had its time."""

    deleted_days: Annotated[Annotated[float, Meta(ge=0, le=36_500)] | None, Meta(description=(
        "Purge what was deleted so long ago, for good; null keeps it."))] = None
    archived_days: Annotated[Annotated[float, Meta(ge=0, le=36_500)] | None, Meta(description=(
        "Purge what was archived so long ago, for good; null keeps it."))] = None


class DocumentSyncJobSettings(JobSettings, frozen=True):
    """The same, for the job that keeps documents up to date."""

    folders: Annotated[tuple[str, ...], Meta(description=(
        "What to keep up to date, each `NAMESPACE=FOLDER` within documents.roots. If there are "
        "none here, the folders of those documents that were read from files before."))] = ()


class TrimmingJobSettings(SteppedJobSettings, frozen=True):
    """The same, for the job that trims what is kept for a while only."""

    journal_days: Annotated[Annotated[float, Meta(ge=1, le=36_500)] | None, Meta(description=(
        "Trim changes older than this from the journal, which is audit log and change feed; null "
        "keeps all of them."))] = None


class BackupJobSettings(JobSettings, frozen=True):
    """The same, for the job that makes backups."""

    keep: Annotated[int, Meta(ge=1, le=10_000, description=(
        "Backups that are kept; the oldest make room."))] = 7


class IntegrityJobSettings(JobSettings, frozen=True):
    """The same, for the job that looks for damage."""

    full: Annotated[bool, Meta(description=(
        "Also compare the indexes of the database with its tables, which takes longer."
        ))] = False


class JobsSettings(Struct, frozen=True):
    """What looks after the store by itself; see docs/jobs.md."""

    decay: Annotated[SteppedJobSettings, Meta(description=(
        "Lets what has faded go down a tier, and in the end to the archive; undoable."
        ))] = SteppedJobSettings(schedule="*/15 * * * *")
    tier_migration: Annotated[SteppedJobSettings, Meta(description=(
        "Moves what is no longer of the moment on to the next tier, summing up what belongs "
        "together; undoable."))] = SteppedJobSettings(schedule="20 * * * *")
    consolidation: Annotated[ConsolidationJobSettings, Meta(description=(
        "Settles what repeats or contradicts, and archives what is given up; undoable."
        ))] = ConsolidationJobSettings(schedule="40 2 * * *", time_limit_s=3600.0)
    embedding_backfill: Annotated[SteppedJobSettings, Meta(description=(
        "Gives vectors to memories that were stored while the embedder was away."
        ))] = SteppedJobSettings(schedule="*/5 * * * *")
    index_maintenance: Annotated[JobSettings, Meta(description=(
        "Seals, merges and compacts the vector index, and compares it with the rows."
        ))] = JobSettings(schedule="*/10 * * * *")
    version_squashing: Annotated[VersionSquashingJobSettings, Meta(description=(
        "Forgets old versions of memories that have newer ones, for good."
        ))] = VersionSquashingJobSettings(enabled=False, schedule="10 4 * * *")
    retention: Annotated[RetentionJobSettings, Meta(description=(
        "Deletes what has expired, and purges what was deleted or archived long ago where that "
        "is configured."))] = RetentionJobSettings(schedule="50 * * * *")
    document_sync: Annotated[DocumentSyncJobSettings, Meta(description=(
        "Brings the documents of configured folders up to date with their files."
        ))] = DocumentSyncJobSettings(schedule="*/15 * * * *", time_limit_s=1800.0)
    trimming: Annotated[TrimmingJobSettings, Meta(description=(
        "Trims answers kept for retries, receipts of contexts and, where that is configured, the "
        "journal."))] = TrimmingJobSettings(schedule="5 * * * *", limit=5_000)
    database_optimise: Annotated[JobSettings, Meta(description=(
        "Brings the statistics of the database up to date and its log into its file."
        ))] = JobSettings(schedule="30 3 * * *")
    backup: Annotated[BackupJobSettings, Meta(description=(
        "Keeps a copy of the whole store in the folder backups of the data folder."
        ))] = BackupJobSettings(schedule="15 1 * * *", time_limit_s=3600.0)
    integrity_check: Annotated[IntegrityJobSettings, Meta(description=(
        "Looks for damage in the database, the index and the audit log, and reports it."
        ))] = IntegrityJobSettings(schedule="0 5 * * 0", time_limit_s=3600.0)
