"""The shapes of the audit log."""

from __future__ import annotations

from typing import TypedDict


class AuditEntry(TypedDict):
    """Who did what, where, and what came of it; `outcome` is `done` or `denied`."""

    seq: int
    at: str
    identity: str
    agent: str | None
    operation: str
    subject: str
    namespace: str | None
    version_before: int | None
    version_after: int | None
    session_id: str | None
    task_id: str | None
    trace: str | None
    request_key: str | None
    outcome: str
    detail: str | None
    hash: str


class AuditListed(TypedDict):
    status: str
    entries: list[AuditEntry]
    count: int
    cursor: str | None
    """Leads on, if there may be more: one call looks at a bounded part of the log, and so a page
    may be short, or even empty, and not the last."""


class AuditVerified(TypedDict):
    status: str
    valid: bool
    problem: str | None
    """What does not fit, if anything."""
    problem_kind: str | None
    """`changed`, `deleted`, `reordered`, `inserted`, `truncated`, `rewritten`, or `end` if only the
    recorded end differs; `trimmed` if all fits, but the earlier check is of what was trimmed."""
    problem_seq: int | None
    """The first entry at which it shows."""
    entries: int
    trimmed_seq: int
    """The log begins behind this entry, because it was trimmed."""
    seq: int
    head: str
    """The hash of the last entry; keep it elsewhere, and a later check shows whether any entry up
    to this one was changed."""
