"""The service itself: is it there, how is it, keep a copy, what went wrong."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


@operation(access="open", http=("GET", "/v1/ping"))
class Ping(Operation[records.Pong], frozen=True):
    """Whether the orchestrator is there and ready."""


@operation(access="admin", everywhere=True, http=("GET", "/v1/stats"))
class Stats(Operation[records.Stats], frozen=True):
    """Counts, sizes, queues and rates."""


@operation(access="admin", everywhere=True, http=("POST", "/v1/backups"), replay=False)
class Backup(Operation[records.BackupMade], frozen=True):
    """Copy the whole store, as it is at one moment, to a new folder where the orchestrator runs."""

    path: Annotated[str, Meta(min_length=1, description="The folder to make; it must not exist.")]


class ErrorReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One kind of error that a process met."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]
    message: Annotated[str, Meta(max_length=2000)]
    count: Annotated[int, Meta(ge=1, le=fields.INTEGER_MAX)] = 1
    context: dict[str, Any] = {}


@operation(access="open", http=("POST", "/v1/errors"), replay=False)
class ReportErrors(Operation[records.ErrorsReported], frozen=True):
    """Tell the error bus what went wrong on the caller's side."""

    source: Annotated[str, Meta(min_length=1, max_length=256, description="Who met the errors.")]
    errors: Annotated[
        list[ErrorReport], Meta(min_length=1, max_length=100, description="What was met.")
    ]


@operation(access="admin", everywhere=True, http=("GET", "/v1/errors"))
class RecentErrors(Operation[records.ErrorsListed], frozen=True):
    """The errors of every process, the latest first."""

    limit: fields.Limit = 50
    source: Annotated[str | None, Meta(description="Only those of this source.")] = None
    code: Annotated[str | None, Meta(description="Only those with this code.")] = None
