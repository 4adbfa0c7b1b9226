"""The change feed: what was done, in the order in which it was done."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields

WAIT_S_MAX = 30.0
OPERATIONS_MAX = 64


class ReadChangesOptions(Operation[records.ChangesRead], frozen=True, kw_only=True):
    wait_s: Annotated[
        float, Meta(ge=0, le=WAIT_S_MAX, description="Seconds to wait for the first change.")
    ] = 0.0
    namespace: fields.NamespaceFilter = None
    operations: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=OPERATIONS_MAX)] | None,
        Meta(description="Only what these operations did."),
    ] = None
    subject: Annotated[
        str | None, Meta(description="Only of this memory, session, group, document or run.")
    ] = None
    agent: Annotated[str | None, Meta(description="Only of this agent.")] = None
    session_id: Annotated[str | None, Meta(description="Only of this session.")] = None
    task_id: Annotated[str | None, Meta(description="Only of this task.")] = None


@operation(access="read", http=("GET", "/v1/changes"))
class ReadChanges(ReadChangesOptions, frozen=True):
    """The changes behind a number, in order, of the namespaces that the caller may read; it can
    wait for the next one."""

    after_seq: Annotated[
        Annotated[int, Meta(ge=0, le=fields.INTEGER_MAX)] | None,
        Meta(description="The last change that is known; from now on if absent."),
    ] = None
    limit: fields.Limit = 100


class TrimJournalOptions(Operation[records.JournalTrimmed], frozen=True, kw_only=True):
    limit: Annotated[
        int, Meta(ge=1, le=1_000_000, description="How many entries to remove at most.")
    ] = 10_000
    dry_run: fields.DryRun = False


@operation(access="admin", everywhere=True, http=("POST", "/v1/audit:trim"))
class TrimJournal(TrimJournalOptions, frozen=True):
    """Remove the oldest entries of the audit log, which is the change feed as well; the rest can
    still be verified."""

    older_than_days: Annotated[
        float, Meta(ge=1, le=36_500, description="Only entries that are older than this.")
    ]
