"""What a storage offers: `read(fn)` and `write(fn)` over a transaction object.

Services write their SQL once, in the dialect that SQLite and PostgreSQL share, with `?` for
parameters. A write function runs as one transaction: all of it happens, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from recollect.orchestrator.storage.inserting import Gathered, Insert

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
    task_id: str | None = None
    outcome: str | None = None
    """None if it was done."""
    detail: str | None = None
    """Why it was denied, or what else there is to say."""


class Committed(msgspec.Struct, frozen=True):
    """What one commit added to the journal: all changes behind one number, up to another.

    One that adds nothing says that the journal ends there now, although it has gone on before.
    """

    before: int
    seq: int
    changes: list[Change]


class BatchLost(Exception):
    """Rows of other transactions could not be written: none of the batch may be acknowledged."""


class SequenceCounter:
    """The last sequence number given out in the batch that is being written."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class SavepointSession(Session, Protocol):
    """A connection on which part of a transaction can be undone."""

    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def rollback_to_savepoint(self) -> None: ...


class WriteTransaction:
    """One write in the making. Touched only by the writer's thread.

    It stands inside a batch of such transactions. What it only inserts is gathered and written
    with the rest of the batch; its first other statement opens a savepoint, by which it can be
    undone alone.
    """

    __slots__ = (
        "_batch_rows",
        "_counter",
        "_first_seq",
        "_own_rows",
        "_saved",
        "_session",
        "after_commit",
        "changes",
        "prefetched",
        "texts",
    )

    def __init__(
        self,
        session: SavepointSession,
        counter: SequenceCounter,
        batch_rows: Gathered,
        prefetched: Any,
    ) -> None:
        self._session = session
        self._counter = counter
        self._first_seq = counter.value
        self._batch_rows = batch_rows
        self._own_rows = Gathered()
        self._saved = False
        self.prefetched = prefetched
        """What the batch's prefetch brought."""
        self.changes: list[Change] = []
        self.texts: dict[int, str | None] = {}
        """New texts by the number of their memory, for the full-text index; None if it is gone."""
        self.after_commit: list[Callable[[], None]] = []
        """Run on the event loop once the commit is on disk, before the write is answered."""

    def next_seq(self) -> int:
        """The number of the next change."""
        self._counter.value += 1
        return self._counter.value

    def last_seq(self) -> int:
        """The number of the last change so far, of this transaction or before it."""
        return self._counter.value

    def insert(self, insert: Insert, rows: Iterable[Params]) -> None:
        """Insert rows; every later statement sees them."""
        self._own_rows.add(insert, rows)

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        self._settle()
        return self._session.execute(sql, params)

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        self._settle()
        self._session.executemany(sql, rows)

    def keep(self) -> None:
        """Let it stand; its rows go with the batch."""
        self._batch_rows.take(self._own_rows)
        if self._saved:
            self._session.release()

    def undo(self) -> None:
        """Take all of it back and leave the rest of the batch as it was."""
        self._counter.value = self._first_seq
        if self._saved:
            self._session.rollback_to_savepoint()
            self._session.release()

    def _settle(self) -> None:
        """Bring what was inserted so far, by others and by this one, before the database."""
        if not self._saved:
            try:
                self._batch_rows.flush(self._session)
            except Exception as error:
                raise BatchLost from error
            self._session.savepoint()
            self._saved = True
        self._own_rows.flush(self._session)


ReadFunction = Callable[[Session], T]
WriteFunction = Callable[[WriteTransaction], T]
PrefetchFunction = Callable[[Session, Sequence[Callable[..., Any]]], Any]
"""Runs once for a batch of write functions, before the first: what they will all ask for."""
SealFunction = Callable[[Session, Iterable[WriteTransaction]], None]
"""Runs once for a batch of transactions, right before their commit."""
CommitObserver = Callable[[Committed], None]
"""Told on the event loop of what is on disk, in order, before anybody is answered."""


class Storage(Protocol):
    """A store of rows with one order of commits."""

    inline_reads: bool
    """Whether a point read is so cheap that it belongs on the event loop."""
    size_sql: str | None
    """Asks for the bytes of the store, where `describe` cannot know them."""
    restoring: str
    """What to do to bring a backup back, for whoever is told of damage."""

    @property
    def committed_seq(self) -> int:
        """The sequence number of the last change that is known to be on disk."""
        ...

    async def reached_seq(self) -> int:
        """The same, whoever made the change: asked anew where others may write to the store."""
        ...

    def read_inline(self, function: ReadFunction[T]) -> T:
        """Run a point read here and now; only where `inline_reads` is true."""
        ...

    def read(self, function: ReadFunction[T], *, asks_once: bool = False) -> asyncio.Future[T]:
        """Run a read in a thread of the reader pool, on one consistent snapshot.

        One that mostly `asks_once` may be spared a transaction; it is begun anew in one if it does
        ask again.
        """
        ...

    def write(self, function: WriteFunction[T]) -> asyncio.Future[T]:
        """Run a write as one transaction; the future is done when it is durable."""
        ...

    def watch(self, observer: CommitObserver) -> None:
        """Tell somebody of every commit that this storage makes."""
        ...

    def write_queue_length(self) -> int:
        """How many writes wait."""
        ...

    def backup(self, folder: str) -> asyncio.Future[dict[str, Any]]:
        """Copy the store as it is at one moment into a new folder."""
        ...

    def problems_of_backup(self, folder: str) -> asyncio.Future[list[str]]:
        """What is wrong with such a copy; nothing if it is whole."""
        ...

    def scrub(self) -> asyncio.Future[bool]:
        """Leave no byte of deleted rows in the store's own files; whether that was done."""
        ...

    def optimise(self) -> asyncio.Future[dict[str, Any]]:
        """Renew statistics, move the log into the file and the like, without holding anybody up;
        the bytes before and after."""
        ...

    def problems(self, *, quick: bool) -> asyncio.Future[list[str]]:
        """What the database itself finds damaged; nothing if all is whole."""
        ...

    def describe(self) -> dict[str, Any]:
        """Kind, size and settings, for `stats`."""
        ...

    def close(self) -> None:
        """Finish the waiting writes and let go of the files."""
        ...
