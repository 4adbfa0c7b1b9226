"""Taking a store with you: its records page by page, and into another store as they were."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


@operation(access="admin", http=("POST", "/v1/exchange:export"))
class ExportRecords(Operation[records.RecordsExported], frozen=True, kw_only=True):
    """A page of all there is, as records of the export format: memories with their versions and
    typed columns, links, groups, documents, sessions with events and state."""

    cursor: fields.Cursor = None
    limit: Annotated[
        int, Meta(ge=1, le=fields.INTEGER_MAX, description="How many records at most.")
    ] = 500
    namespace: fields.NamespaceFilter = None


class ImportRecordsOptions(Operation[records.RecordsImported], frozen=True, kw_only=True):
    dry_run: Annotated[bool, Meta(description="Only say what would become of each.")] = False


@operation(access="admin", http=("POST", "/v1/exchange:import"))
class ImportRecords(ImportRecordsOptions, frozen=True):
    """Take records of the export format in, as they were: with their ids, versions and times. What
    is there already is left alone, so the same records again change nothing."""

    records: Annotated[
        list[dict[str, Any]],
        Meta(min_length=1, description="Records as an export gave them, in their order."),
    ]
