"""What a storage offers: `read(fn)` and `write(fn)` over a transaction object.

Services write their SQL once, in the dialect that SQLite and PostgreSQL share, with `?` for
parameters. A write function runs as one transaction: all of it happens, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]


class Session(Protocol):
    """One connection, in the hands of one thread."""

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows."""
        ...

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        """Run one statement for many rows."""
        ...


class Change(msgspec.Struct, frozen=True):
    """One change: an entry of the audit and an event of the feed, under one sequence number."""

    seq: int
    at_us: int
    identity: str
    agent: str | None
    operation: str
    subject: str
    """Id of the memory, group or session that changed."""
    namespace: str | None
    version_before: int | None
    version_after: int | None
    session_id: str | None
    trace: str | None
    request_key: str | None


class WriteTransaction:
    """One write in the making. Touched only by the writer's thread."""

    __slots__ = ("_counter", "after_commit", "changes", "session", "touched")

    def __init__(self, session: Session, counter: SequenceCounter) -> None:
        self.session = session
        self._counter = counter
        self.changes: list[Change] = []
        self.touched: set[int] = set()
        """Numbers of the memories whose text changed, for the full-text index."""
        self.after_commit: list[Callable[[], None]] = []
        """Run on the event loop once the commit is on disk, before the write is answered."""

    def next_seq(self) -> int:
        """The number of the next change."""
        self._counter.value += 1
        return self._counter.value

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        return self.session.execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        self.session.executemany(sql, rows)


class SequenceCounter:
    """The last sequence number given out in the batch that is being written."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


ReadFunction = Callable[[Session], T]
WriteFunction = Callable[[WriteTransaction], T]
SealFunction = Callable[[Session, Iterable[WriteTransaction]], None]
"""Runs once for a batch of transactions, right before their commit."""


class Storage(Protocol):
    """A store of rows with one order of commits."""

    inline_reads: bool
    """Whether a point read is so cheap that it belongs on the event loop."""

    @property
    def committed_seq(self) -> int:
        """The sequence number of the last change that is on disk."""
        ...

    def read_inline(self, function: ReadFunction[T]) -> T:
        """Run a point read here and now; only where `inline_reads` is true."""
        ...

    def read(self, function: ReadFunction[T]) -> asyncio.Future[T]:
        """Run a read in a thread of the reader pool, on one consistent snapshot."""
        ...

    def write(self, function: WriteFunction[T]) -> asyncio.Future[T]:
        """Run a write as one transaction; the future is done when it is durable."""
        ...

    def write_queue_length(self) -> int:
        """How many writes wait."""
        ...

    def backup(self, folder: str) -> asyncio.Future[dict[str, Any]]:
        """Copy the store as it is at one moment into a new folder."""
        ...

    def describe(self) -> dict[str, Any]:
        """Kind, size and settings, for `stats`."""
        ...

    def close(self) -> None:
        """Finish the waiting writes and let go of the files."""
        ...
