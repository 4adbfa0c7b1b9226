"""The audit log: every change and every refused attempt, chained by hash."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


@operation(access="read", http=("GET", "/v1/audit"))
class AuditLog(Operation[records.AuditListed], frozen=True, kw_only=True):
    """Who did what, the latest first: the entries of the namespaces that the caller may read."""

    namespace: fields.NamespaceFilter = None
    subject: Annotated[
        str | None, Meta(description="Only of this memory, session, group, document or run.")
    ] = None
    identity: Annotated[str | None, Meta(description="Only of this identity.")] = None
    agent: Annotated[str | None, Meta(description="Only of this agent.")] = None
    operation: Annotated[str | None, Meta(description="Only of this operation.")] = None
    task_id: Annotated[str | None, Meta(description="Only of this task.")] = None
    trace: Annotated[str | None, Meta(description="Only of this request.")] = None
    outcome: Annotated[
        Literal["done", "denied"] | None, Meta(description="Only what was done, or was denied.")
    ] = None
    since: fields.Moment = None
    until: fields.Moment = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None
    min_seq: fields.MinSeq = None


@operation(access="admin", everywhere=True, http=("POST", "/v1/audit:verify"))
class VerifyAudit(Operation[records.AuditVerified], frozen=True, kw_only=True):
    """Whether the audit log is as it was written: no entry changed, removed, added or moved."""

    expected_seq: Annotated[
        Annotated[int, Meta(ge=0, le=fields.INTEGER_MAX)] | None,
        Meta(description="Where the log ended at an earlier check."),
    ] = None
    expected_head: Annotated[
        str | None, Meta(description="The head hash of that check; it must still be there.")
    ] = None
