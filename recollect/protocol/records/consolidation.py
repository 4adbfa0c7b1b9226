"""The shapes of conflicts, and of runs that can be undone."""

from __future__ import annotations

from typing import Any, TypedDict


class ConflictSide(TypedDict):
    """One of the memories that are in conflict."""

    memory_id: str
    namespace: str
    key: str | None
    content: str
    value: Any
    source: str | None
    trust: float
    updated_at: str


class ConflictFound(TypedDict):
    """Memories that say the same (`duplicate`), or different things of the same
    (`contradiction`)."""

    kind: str
    subject: str
    similarity: float
    reason: str
    memories: list[ConflictSide]


class ConflictsFound(TypedDict):
    status: str
    namespace: str
    conflicts: list[ConflictFound]
    count: int
    examined: int
    complete: bool
    """Whether all memories of the namespace were looked at."""


class GroupConsolidated(TypedDict):
    """What became of one conflict: `kept_id` stays or was written, the sources are archived."""

    kind: str
    subject: str
    kept_id: str | None
    content: str
    created: bool
    archived_ids: list[str]
    skipped: str | None
    """Why nothing was done, if nothing was."""


class Consolidated(TypedDict):
    status: str
    run_id: str | None
    """To undo it by; None for a dry run, and if nothing was to be settled."""
    namespace: str
    strategy: str
    dry_run: bool
    groups: list[GroupConsolidated]
    created: int
    archived: int
    skipped: int
    examined: int
    refusal: str | None
    """Of a dry run: why a real one would do nothing, if so."""


class SourceForgotten(TypedDict):
    status: str
    run_id: str | None
    """To undo it by; None for a dry run, and if there was nothing to take back."""
    source: str
    dry_run: bool
    forgotten: int
    """Memories that it wrote."""
    reverted: int
    """Memories of others that it had changed: back at the last version before that."""
    derived: int
    """Memories that were made from what it wrote."""
    revived: int
    """Memories of others that had been archived in favour of a derived one."""
    memory_ids: list[str]


class RunRecord(TypedDict):
    """A run; `run_status` is running, done, undone, failed, or interrupted: to be gone on with."""

    run_id: str
    kind: str
    namespace: str | None
    run_status: str
    started_at: str
    ended_at: str | None
    started_by: str | None
    report: dict[str, Any]


class RunFetched(TypedDict):
    status: str
    run: RunRecord


class RunsListed(TypedDict):
    status: str
    runs: list[RunRecord]
    count: int
    cursor: str | None


class RunUndone(TypedDict):
    status: str
    run_id: str
    restored: int
    removed: int
    skipped: list[str]
    """Memories that were changed since the run, and are left as they are."""
    seq: int
