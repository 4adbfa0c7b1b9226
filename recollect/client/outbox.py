"""A small local file that keeps writes until the orchestrator takes them.

Each write keeps its idempotency key, so that one whose fate is unknown can be delivered again and
still takes effect once, as long as the orchestrator remembers the key (at least a day). The file is
a SQLite database of its own; several processes may share it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypedDict

from recollect.client import forking
from recollect.client.encoding import Call, Speaker
from recollect.protocol.errors import (
    IdempotencyConflict,
    LimitExceeded,
    RecollectError,
    StorageFailed,
    StorageFull,
)

OUTBOX_ITEMS_MAX = 100_000
REFUSED_ITEMS_MAX = 10_000
BUSY_TIMEOUT_S = 5.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS queue (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    operation TEXT NOT NULL,
    body BLOB NOT NULL,
    agent TEXT,
    session TEXT,
    queued_at REAL NOT NULL,
    task TEXT
);
CREATE TABLE IF NOT EXISTS refused (
    position INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    body BLOB NOT NULL,
    agent TEXT,
    session TEXT,
    queued_at REAL NOT NULL,
    refused_at REAL NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    task TEXT
);
"""

# Items leave only at the head, so positions are without gaps and their distance is the count.
_COUNT = "SELECT coalesce(max(position) - min(position) + 1, 0) FROM queue"

_REFUSE = """
INSERT OR REPLACE INTO refused (
    position, key, operation, body, agent, session, task, queued_at, refused_at, code, message
)
SELECT position, key, operation, body, agent, session, task, queued_at, ?, ?, ?
FROM queue WHERE position = ?
"""

_TRIM_REFUSED = """
DELETE FROM refused WHERE position <= (
    SELECT position FROM refused ORDER BY position DESC LIMIT 1 OFFSET ?
)
"""


class Item(NamedTuple):
    """One write in the queue."""

    position: int
    key: str
    operation: str
    body: bytes
    speaker: Speaker


class Queued(TypedDict):
    """What a write returns that went to the outbox."""

    status: str
    idempotency_key: str
    queued: int


class OutboxStatus(TypedDict):
    """What `outbox_status()` returns."""

    status: str
    queued: int
    refused: int
    last_error: str | None


class OutboxFile:
    """The queue in its file. Any thread may use it: one lock guards the one connection."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        wall: Callable[[], float],
        items_max: int = OUTBOX_ITEMS_MAX,
    ) -> None:
        # The folder may be another one when the file is first used.
        self.path = os.path.abspath(os.fsdecode(path))
        self._wall = wall
        self._items_max = items_max
        self._start()
        forking.register_settling(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        # Whether the lock is held for a fork. Touched only by the thread that forks.
        self._settled = False
        self._connection: sqlite3.Connection | None = None

    def before_fork(self) -> None:
        # SQLite knows of each file which locks this process has on it. The child gets a copy of
        # that, and not the locks: a transaction under way would seem to be its own, without end.
        # Not for ever: a signal handler may fork in the middle of a transaction of its own thread.
        self._settled = self._lock.acquire(timeout=BUSY_TIMEOUT_S)

    def after_fork_in_parent(self) -> None:
        if self._settled:
            self._lock.release()

    def after_fork(self) -> None:
        forking.keep_unclosed(self._connection)
        self._start()

    def put(self, call: Call, speaker: Speaker) -> int:
        """Add a write behind all others, unless its key waits already; returns how many wait."""
        assert call.key is not None, "a write carries a key"
        with self._transaction() as connection:
            known = connection.execute(
                "SELECT operation, body FROM queue WHERE key = ?", (call.key,)
            ).fetchone()
            count = int(connection.execute(_COUNT).fetchone()[0])
            if known is not None:
                if known != (call.spec.name, call.body):
                    raise IdempotencyConflict(
                        f"idempotency_key {call.key!r} waits in the outbox with another payload.",
                        idempotency_key=call.key,
                    )
                return count
            if count >= self._items_max:
                raise LimitExceeded(
                    f"The outbox {self.path} is full: {count:,} writes wait "
                    "(outbox_items_max). Start the orchestrator to deliver them.",
                    limit="outbox_items_max",
                    maximum=self._items_max,
                )
            said = (speaker.agent, speaker.session, speaker.task)
            connection.execute(
                "INSERT INTO queue (key, operation, body, agent, session, task, queued_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (call.key, call.spec.name, call.body, *said, self._wall()),
            )
            return count + 1

    def head(self) -> Item | None:
        """The write that is next."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT position, key, operation, body, agent, session, task FROM queue "
                "ORDER BY position LIMIT 1"
            ).fetchone()
            if row is None:
                return None
            position, key, operation, body, *speaker = row
            return Item(position, key, operation, body, Speaker(*speaker))

    def remove(self, item: Item) -> None:
        """The orchestrator has it."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM queue WHERE position = ?", (item.position,))

    def refuse(self, item: Item, error: RecollectError) -> None:
        """The orchestrator will never take it: put it aside with the reason."""
        with self._transaction() as connection:
            connection.execute(_REFUSE, (self._wall(), error.code, error.message, item.position))
            connection.execute("DELETE FROM queue WHERE position = ?", (item.position,))
            connection.execute(_TRIM_REFUSED, (REFUSED_ITEMS_MAX,))

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many were refused."""
        with self._reading() as connection:
            queued = connection.execute(_COUNT).fetchone()[0]
            refused = connection.execute("SELECT count(*) FROM refused").fetchone()[0]
            return int(queued), int(refused)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connected()
            except sqlite3.Error as error:
                raise self._translated(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            _make_private(self.path)
            connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(_SCHEMA)
                _add_tasks(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _translated(self, error: sqlite3.Error) -> RecollectError:
        if getattr(error, "sqlite_errorname", "").startswith("SQLITE_FULL"):
            return StorageFull(f"The disk with the outbox {self.path} is full.")
        return StorageFailed(f"The outbox {self.path} cannot be used: {error}.")


def _make_private(path: str) -> None:
    """Make a file that only its owner may read, if there is none. SQLite gives its journal the same
    permissions; what is wrong with the path it says itself."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def _add_tasks(connection: sqlite3.Connection) -> None:
    """Bring a file up to date that was made when writes did not say their task."""
    if _knows_tasks(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    if not _knows_tasks(connection):  # another process may have been quicker
        for table in ("queue", "refused"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN task TEXT")
    connection.execute("COMMIT")


def _knows_tasks(connection: sqlite3.Connection) -> bool:
    return any(row[1] == "task" for row in connection.execute("PRAGMA table_info(queue)"))
