"""The shapes of exporting and importing."""

from __future__ import annotations

from typing import Any, TypedDict

from recollect.protocol.errors import ErrorBody


class RecordsExported(TypedDict):
    status: str
    records: list[dict[str, Any]]
    """Each with its `kind`; docs/export-format.md says what each holds. May be empty on the way."""
    cursor: str | None
    """Where the next page begins; None behind the last."""
    seq: int
    """The last change before the first page: what was made later is left out."""
    store_id: str | None
    memories: int | None
    """How many memories there are, about, to tell how far it is; only with the first page."""


class RecordProblem(TypedDict):
    item: int
    """Its place among the records that were sent."""
    kind: str
    id: str
    outcome: str
    """conflict if something else is in its place, refused if it cannot be taken in."""
    error: ErrorBody


class RecordsImported(TypedDict):
    status: str
    """partial if a record was refused or met a conflict."""
    added: int
    present: int
    """Were there already, just so or in a later version."""
    completed: int
    """Were there and lacked a reference or a part, which they have now."""
    conflicts: int
    refused: int
    waiting: list[int]
    """Places of records that refer to what is not there yet: send them again at the end."""
    problems: list[RecordProblem]
    dry_run: bool
    seq: int
