"""Tables as both storages have them: the same names, columns and keys, read page by page.

They are found in the databases themselves, so that a table of a later schema is not forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.orchestrator.storage.interface import Row, Session

DERIVED = frozenset({"schema_migrations", "memory_words", "word_totals"})
"""What each storage makes for itself. SQLite's words are in tables of FTS5, which are no tables of
ours either."""
PROPERTIES = "properties"
"""Taken along last, when the copy becomes a store."""

PAGE_ROWS = 500
PAGE_ROWS_MIN = 4
PAGE_ROWS_MAX = 4_000
PAGE_BYTES = 4 * 1024 * 1024
CHECKSUM_BITS = 256

_encode = msgspec.msgpack.Encoder().encode

Key = tuple[Any, ...]


class Table(msgspec.Struct, frozen=True):
    """One table."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def key_of(self, row: Row) -> Key:
        return tuple(row[self.columns.index(name)] for name in self.key)


class Checksum(msgspec.Struct):
    """Rows in no order: how many, and the sum of their hashes."""

    rows: int = 0
    total: int = 0

    def take(self, rows: Sequence[Row]) -> None:
        for row in rows:
            digest = hashlib.sha256(_encode(row)).digest()
            self.total += int.from_bytes(digest, "big")
        self.rows += len(rows)
        self.total %= 1 << CHECKSUM_BITS

    def __str__(self) -> str:
        return f"{self.total:064x}"


def pages(session: Session, table: Table, after: Key | None = None) -> Iterator[list[Row]]:
    """The rows behind a key, in the order of the keys, as many at once as have a bounded size."""
    columns, key = ", ".join(table.columns), ", ".join(table.key)
    marks = ", ".join("?" for _ in table.key)
    first = f"SELECT {columns} FROM {table.name} ORDER BY {key} LIMIT ?"
    later = f"SELECT {columns} FROM {table.name} WHERE ({key}) > ({marks}) ORDER BY {key} LIMIT ?"
    size = PAGE_ROWS
    while True:
        if after is None:
            rows = session.execute(first, (size,))
        else:
            rows = session.execute(later, (*after, size))
        if not rows:
            return
        yield rows
        after = table.key_of(rows[-1])
        taken = len(_encode(rows))
        if taken > 2 * PAGE_BYTES:
            size = max(PAGE_ROWS_MIN, size * PAGE_BYTES // taken)
        elif taken < PAGE_BYTES // 2:
            size = min(PAGE_ROWS_MAX, 2 * size)


def count(session: Session, table: Table) -> int:
    [(rows,)] = session.execute(f"SELECT count(*) FROM {table.name}")
    return int(rows)
