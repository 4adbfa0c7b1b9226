"""Keeping a store in order: what the jobs of the scheduler ask for, and who looks after it may ask.

Each is bounded by its limit and can be repeated at any time: it goes on with what is left.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

Limit = Annotated[
    int, Meta(ge=1, le=fields.INTEGER_MAX, description="How many of them to see to at most.")
]
RunLimit = Annotated[
    int, Meta(ge=1, le=fields.RUN_ITEMS_MAX, description="How many of them to see to at most.")
]
Days = Annotated[float, Meta(ge=0, le=36_500)] | None


class FadeMemoriesOptions(Operation[records.MemoriesFaded], frozen=True, kw_only=True):
    limit: RunLimit = 1000
    dry_run: fields.DryRun = False


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:fade"))
class FadeMemories(FadeMemoriesOptions, frozen=True):
    """Move what has faded to a colder tier, or out of long-term memory into the archive. A run that
    can be undone; nothing is deleted."""

    namespace: fields.NamespaceFilter = None


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:retention"))
class ApplyRetention(Operation[records.RetentionApplied], frozen=True, kw_only=True):
    """Delete what has expired, and purge what was deleted or archived long enough ago."""

    deleted_days: Annotated[
        Days, Meta(description="Purge what was deleted longer ago; nothing if absent.")
    ] = None
    archived_days: Annotated[
        Days, Meta(description="Purge what was archived longer ago; nothing if absent.")
    ] = None
    limit: RunLimit = 1000
    dry_run: fields.DryRun = False


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:trim"))
class TrimAnswers(Operation[records.AnswersTrimmed], frozen=True, kw_only=True):
    """Forget answers that are no longer repeated to a retry, and old receipts of contexts."""

    limit: Limit = 5000
    dry_run: fields.DryRun = False


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:backup"), replay=False)
class KeepBackup(Operation[records.BackupKept], frozen=True, kw_only=True):
    """Back the store up beside its data, and remove the oldest of such backups."""

    keep: Annotated[
        int, Meta(ge=1, le=10_000, description="How many backups are there afterwards at most.")
    ] = 7


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:embed"))
class BackfillEmbeddings(Operation[records.EmbeddingsBackfilled], frozen=True, kw_only=True):
    """Give memories that have no vector theirs, and look for such that nobody knows of."""

    limit: Limit = 1000


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:index"))
class MaintainIndex(Operation[records.IndexMaintained], frozen=True, kw_only=True):
    """Put the vector index in order: seal what is new, merge small segments, drop what is gone."""

    dry_run: fields.DryRun = False


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:agreement"))
class CheckIndex(Operation[records.IndexChecked], frozen=True, kw_only=True):
    """Compare the vector index with the stored vectors and memories, and set right what differs."""

    repair: Annotated[bool, Meta(description="Set right what differs.")] = True


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:optimise"))
class OptimiseStorage(Operation[records.StorageOptimised], frozen=True, kw_only=True):
    """Let the storage look after itself: statistics, full text, write-ahead log."""


@operation(access="admin", everywhere=True, http=("POST", "/v1/maintenance:integrity"))
class CheckIntegrity(Operation[records.IntegrityChecked], frozen=True, kw_only=True):
    """Whether the store is whole: the database, the audit log, words, vectors and what hangs on
    memories. Nothing is changed."""

    quick: Annotated[
        bool,
        Meta(description="Without comparing the indexes of the database with its tables."),
    ] = True
