"""The shapes of the change feed."""

from __future__ import annotations

from typing import TypedDict


class FeedChange(TypedDict):
    """One thing that was done: its number in the order of all changes, what, where and by whom."""

    seq: int
    at: str
    operation: str
    subject: str
    """Id of what changed: a memory, session, group, document or run."""
    namespace: str | None
    version_before: int | None
    version_after: int | None
    identity: str
    agent: str | None
    session_id: str | None
    task_id: str | None
    trace: str | None


class ChangesRead(TypedDict):
    status: str
    changes: list[FeedChange]
    next_seq: int
    """Where to go on: behind the last change that was looked at, whether it fitted or not."""
    seq: int
    """The last change of the whole store."""
    complete: bool
    """Whether nothing is left up to there."""


class JournalTrimmed(TypedDict):
    status: str
    removed: int
    kept_from_seq: int
    """The first entry that is still there, or will be the next."""
    complete: bool
    """Whether all that is old enough was seen to."""
    dry_run: bool
