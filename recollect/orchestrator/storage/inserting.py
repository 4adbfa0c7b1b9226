"""Rows on their way in: gathered over a batch of transactions, written in few statements.

Each call into SQLite lets go of the interpreter's lock and must win it back, which on a busy
orchestrator costs more than the call; and each call to a server is a round trip. So the rows that
many transactions insert into one table are written together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")

ROWS_MAX = 64  # in one statement; a power of two
ROWS_EXACT_MAX = 8
"""So many rows, and fewer, are one statement: as many as write at once on a common machine."""


class Insert(msgspec.Struct, frozen=True, cache_hash=True):
    """A statement that inserts rows of the same columns into one table."""

    table: str
    columns: tuple[str, ...]
    present: tuple[str, ...] = ()
    """Columns by which a row is known that is there already, and then left as it is."""


class Executes(Protocol):
    """As much of a session as inserting needs."""

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[Any]: ...


@lru_cache(maxsize=1024)
def insert_sql(insert: Insert, rows: int) -> str:
    """The statement for a number of rows."""
    marks = f"({', '.join('?' for _ in insert.columns)})"
    unless = f" ON CONFLICT ({', '.join(insert.present)}) DO NOTHING" if insert.present else ""
    return (
        f"INSERT INTO {insert.table} ({', '.join(insert.columns)}) "
        f"VALUES {', '.join([marks] * rows)}{unless}"
    )


def insert_rows(session: Executes, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
    """Write rows in few statements."""
    for part in portions(rows):
        params = tuple(chain.from_iterable(part))
        session.execute(insert_sql(insert, len(part)), params)


def portions(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Rows in few parts: a few rows in one, more in as many as their number's powers of two, so
    that a statement comes in few lengths and all of them stay prepared."""
    start, left = 0, len(rows)
    while left:
        size = left if left <= ROWS_EXACT_MAX else min(ROWS_MAX, 1 << (left.bit_length() - 1))
        yield rows[start : start + size]
        start, left = start + size, left - size


class Gathered:
    """Rows that wait to be written, by statement, in the order in which these were first met."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[Insert, list[Sequence[Any]]] = {}

    def add(self, insert: Insert, rows: Iterable[Sequence[Any]]) -> None:
        self._rows.setdefault(insert, []).extend(rows)

    def take(self, other: Gathered) -> None:
        """Take over what another has gathered."""
        for insert, rows in other._rows.items():
            self.add(insert, rows)

    def flush(self, session: Executes) -> None:
        """Write everything that waits."""
        if self._rows:
            rows_by_insert, self._rows = self._rows, {}
            for insert, rows in rows_by_insert.items():
                insert_rows(session, insert, rows)
