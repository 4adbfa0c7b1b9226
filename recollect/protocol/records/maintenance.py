"""The shapes of what keeps a store in order."""

from __future__ import annotations

from typing import TypedDict


class MemoriesFaded(TypedDict):
    status: str
    run_id: str | None
    """None in a dry run, and if nothing was moved."""
    dry_run: bool
    to_medium: int
    """Moved from the tier short to medium."""
    to_long: int
    """Moved from the tier medium to long as they are."""
    summarised: int
    """Summed up on the way to the tier long, and archived behind their summary."""
    archived: int
    """Moved from the tier long into the archive."""
    kept: int
    """Faded, and to stay where they are all the same."""
    examined: int
    complete: bool
    """Whether all that had faded was seen to."""
    reason: str | None
    """Why not."""
    resumed: bool
    """Whether it went on with a run that had been broken off."""


class RetentionApplied(TypedDict):
    status: str
    expired: int
    """Deleted because they had expired; they can be restored until they are purged."""
    purged_deleted: int
    purged_archived: int
    complete: bool
    """Whether all that was due is done; if not, the same again goes on."""
    wiped: bool
    """Whether nothing is left of what was purged, in files neither; if not, that is going on."""
    dry_run: bool


class AnswersTrimmed(TypedDict):
    status: str
    answers: int
    receipts: int
    complete: bool
    """Whether all that was due is done; if not, the same again goes on."""
    dry_run: bool


class BackupKept(TypedDict):
    status: str
    path: str
    seq: int
    """The last change that is in it."""
    bytes: int
    sha256: str
    removed: int
    """How many older backups made way."""


class EmbeddingsBackfilled(TypedDict):
    status: str
    embedded: int
    waiting: int
    """How many memories still have no vector."""
    reason: str | None
    """Why they have none."""


class IndexMaintained(TypedDict):
    status: str
    sealed: int
    """Vectors that were in the head and are in a segment now."""
    merged: int
    """Segments that were made one with others."""
    compacted: int
    """Segments that were rewritten without what is gone."""
    segments: int
    vectors: int
    complete: bool
    """Whether all is in order; if not, that is going on."""
    dry_run: bool


class IndexChecked(TypedDict):
    status: str
    memories: int
    """That can be searched."""
    vectors: int
    """In the index."""
    waiting: int
    """Memories whose vector is still to be made."""
    missing: int
    """Stored and not in the index, or neither there nor waiting."""
    surplus: int
    """In the index or stored, of no memory that can be searched."""
    repaired: int
    agrees: bool
    """Whether the index agrees with what is stored, after what was set right."""


class StorageOptimised(TypedDict):
    status: str
    before_bytes: int
    after_bytes: int
    log_bytes: int
    """Of the write-ahead log, afterwards."""
    free_bytes: int
    """Room within the file that new rows will use."""
    merged_steps: int
    """Of the full text."""
    complete: bool


class IntegrityProblem(TypedDict):
    part: str
    text: str
    advice: str


class IntegrityChecked(TypedDict):
    status: str
    sound: bool
    problems: list[IntegrityProblem]
    checked: list[str]
    """The parts that were looked at."""
