"""A memory as it lies in the table, and as callers see it."""

from __future__ import annotations

import math
import sys
from typing import Any, cast

import msgspec

from recollect.orchestrator.clock import to_iso, to_iso_or_none
from recollect.orchestrator.storage.inserting import Insert
from recollect.protocol.records import MemoryRecord

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.decode


class MemoryRow(msgspec.Struct):
    """One row of `memories`, in the order of its columns."""

    num: int
    id: str
    seq: int
    namespace: str
    key: str | None
    version: int
    collection: str
    memory_type: str
    tier: str
    content: str
    value: str | None
    metadata: str
    tags: str
    importance: float
    stability_s: float
    access_count: int
    last_access_us: int
    fades_us: int
    parent_id: str | None
    session_id: str | None
    created_by: str | None
    updated_by: str | None
    source: str | None
    trust: float
    valid_from_us: int | None
    valid_to_us: int | None
    created_us: int
    updated_us: int
    expires_us: int | None
    archived_us: int | None
    deleted_us: int | None
    operation: str

    def alive(self, now_us: int) -> bool:
        """Neither deleted nor expired."""
        return self.deleted_us is None and (self.expires_us is None or self.expires_us > now_us)

    def found(self, now_us: int) -> bool:
        """Neither deleted nor archived nor expired: what a search may show."""
        return (
            self.deleted_us is None
            and self.archived_us is None
            and (self.expires_us is None or self.expires_us > now_us)
        )

    @property
    def present(self) -> bool:
        """Neither deleted nor archived: only such memories are searched."""
        return self.deleted_us is None and self.archived_us is None


PRESENT = "deleted_us IS NULL AND archived_us IS NULL"
"""The same in SQL."""
COLUMNS = ", ".join(MemoryRow.__struct_fields__)
JOINED_COLUMNS = ", ".join(f"m.{name}" for name in MemoryRow.__struct_fields__)
"""The same where `memories` is joined as m."""

# What an update may change, and so what a version must remember. The rest is identity, belongs to
# the memory's strength, or is its session, which it keeps until that is deleted: not versioned.
VERSIONED = (
    "seq",
    "version",
    "memory_type",
    "tier",
    "content",
    "value",
    "metadata",
    "tags",
    "importance",
    "parent_id",
    "updated_by",
    "source",
    "trust",
    "valid_from_us",
    "valid_to_us",
    "updated_us",
    "expires_us",
    "archived_us",
    "deleted_us",
    "operation",
)

SELECT_BY_ID = f"SELECT {COLUMNS} FROM memories WHERE id = ?"
SELECT_BY_NUM = f"SELECT {COLUMNS} FROM memories WHERE num = ?"
SELECT_BY_NUMS = f"SELECT {COLUMNS} FROM memories WHERE num IN ({{marks}})"
INSERT = Insert("memories", MemoryRow.__struct_fields__)
# A change of tier or importance moves the strength along, so an update writes that as well.
FADING = ("stability_s", "access_count", "last_access_us", "fades_us")
_UPDATED = (*VERSIONED, *FADING)
UPDATE = f"UPDATE memories SET {', '.join(f'{c} = ?' for c in _UPDATED)} WHERE num = ?"
UPDATE_FADING = (
    f"UPDATE memories SET seq = ?, {', '.join(f'{c} = ?' for c in FADING)} WHERE num = ?"
)
INSERT_VERSION = Insert("versions", ("num", "version", "updated_us", "superseded_us", "snapshot"))


def strength_at(row: MemoryRow, now_us: int) -> float:
    """How present a memory is: 1 when just used, falling with time; never above 1."""
    elapsed_us = now_us - row.last_access_us
    return math.exp(elapsed_us / (-1_000_000 * row.stability_s)) if elapsed_us > 0 else 1.0


def record_of(row: MemoryRow, now_us: int) -> MemoryRecord:
    """The memory as callers see it."""
    record = lasting_record(row)
    _strengthen(record, row, now_us)
    return record


def with_strength(lasting: MemoryRecord, row: MemoryRow, now_us: int) -> MemoryRecord:
    """A record with what changes by the moment and by every read; the lasting part stays."""
    record = lasting.copy()
    _strengthen(record, row, now_us)
    return record


def _strengthen(record: MemoryRecord, row: MemoryRow, now_us: int) -> None:
    record["strength"] = strength_at(row, now_us)
    record["stability_s"] = row.stability_s
    record["access_count"] = row.access_count
    record["last_accessed_at"] = (
        record["created_at"] if row.last_access_us == row.created_us else to_iso(row.last_access_us)
    )
    record["fades_at"] = to_iso(row.fades_us)


def lasting_record(row: MemoryRow) -> MemoryRecord:
    """What of a record stays the same until the memory is written again."""
    # Lists of memories spend their time here. Most have neither metadata nor tags, and were never
    # changed: what is the same is not made twice.
    created_at = to_iso(row.created_us)
    unchanged = row.updated_us == row.created_us
    return {
        "id": row.id,
        "seq": row.seq,
        "namespace": row.namespace,
        "key": row.key,
        "version": row.version,
        "collection": row.collection,
        "memory_type": row.memory_type,
        "memory_tier": row.tier,
        "content": row.content,
        "value": None if row.value is None else decode_json(row.value),
        "metadata": {} if row.metadata == "{}" else decode_json(row.metadata),
        "tags": [] if row.tags == "[]" else decode_json(row.tags),
        "importance": row.importance,
        "strength": 0.0,
        "stability_s": 0.0,
        "access_count": 0,
        "last_accessed_at": "",
        "fades_at": "",
        "parent_id": row.parent_id,
        "session_id": row.session_id,
        "created_by": row.created_by,
        "updated_by": row.updated_by,
        "source": row.source,
        "trust": row.trust,
        "valid_from": to_iso_or_none(row.valid_from_us),
        "valid_to": to_iso_or_none(row.valid_to_us),
        "created_at": created_at,
        "updated_at": created_at if unchanged else to_iso(row.updated_us),
        "expires_at": to_iso_or_none(row.expires_us),
        "archived_at": to_iso_or_none(row.archived_us),
        "deleted_at": to_iso_or_none(row.deleted_us),
    }


ROW_BYTES = 2_048
READ_BYTES_PER_CHAR = 5


class CachedMemory(msgspec.Struct, frozen=True):
    """A row near at hand, with the part of its record that need not be made again."""

    row: MemoryRow
    lasting: MemoryRecord

    @property
    def weight(self) -> int:
        """About how many bytes it takes to keep it."""
        row = self.row
        # What is read from JSON takes several times its length, and the text is there as well.
        read = len(row.metadata) + len(row.value or "") + len(row.tags)
        return ROW_BYTES + sys.getsizeof(row.content) + READ_BYTES_PER_CHAR * read


def snapshot_of(row: MemoryRow, columns: dict[str, Any] | None = None) -> str:
    """What a version keeps, as JSON; with the typed columns of a memory that has such."""
    kept = {name: getattr(row, name) for name in VERSIONED}
    return encode_json(kept if columns is None else {**kept, "columns": columns}).decode()


def with_snapshot(row: MemoryRow, snapshot: str) -> MemoryRow:
    """The row as it was in a version."""
    old = cast("dict[str, Any]", decode_json(snapshot))
    old.pop("session_id", None)  # once it was kept; the session may be gone since
    old.pop("columns", None)
    return msgspec.structs.replace(row, **old)


def update_params(row: MemoryRow) -> tuple[Any, ...]:
    """The parameters of `UPDATE`."""
    return (*(getattr(row, name) for name in _UPDATED), row.num)


def fading_params(row: MemoryRow) -> tuple[Any, ...]:
    """The parameters of `UPDATE_FADING`."""
    return (row.seq, *(getattr(row, name) for name in FADING), row.num)
