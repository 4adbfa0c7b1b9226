"""One connection to a database file, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from recollect.orchestrator.storage.damage import damaged as not_whole
from recollect.orchestrator.storage.interface import Params, Row
from recollect.protocol.errors import (
    AlreadyExists,
    RecollectError,
    ShuttingDown,
    StorageFailed,
    StorageFull,
)

BUSY_TIMEOUT_MS = 10_000
STATEMENTS_CACHED = 256
WAL_BYTES_KEPT = 64 * 1024 * 1024
# Of what goes wrong with a file, what has nothing to do with the room on its disk.
UNREADABLE = frozenset(
    (
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_CORRUPTFS,
        apsw.SQLITE_IOERR_DATA,
    )
)


class SqliteSession:
    """One apsw connection behind the common interface."""

    sole_writer = True

    def __init__(self, path: Path, *, page_cache_mb: int, readonly: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (0 if readonly else apsw.SQLITE_OPEN_CREATE)
        self.connection = apsw.Connection(
            str(path), flags=flags, statementcachesize=STATEMENTS_CACHED
        )
        self.connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if readonly:
            self.connection.pragma("query_only", True)
        else:
            self.connection.pragma("journal_mode", "wal")
            self.connection.pragma("journal_size_limit", WAL_BYTES_KEPT)
            # What is deleted is overwritten, so that nothing is left of a memory that is purged.
            self.connection.pragma("secure_delete", True)
        self.connection.pragma("synchronous", "full")
        self.connection.pragma("cache_size", -1024 * page_cache_mb)
        self.connection.pragma("temp_store", "memory")
        self.execute_raw = self.connection.execute
        self.between_batches: Callable[[apsw.Connection], None] | None = None

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        return self.execute_raw(sql, tuple(params)).fetchall()

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        self.connection.executemany(sql, [tuple(row) for row in rows])

    def begin(self) -> None:
        self.execute_raw("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute_raw("COMMIT")

    def rollback(self) -> None:
        self.execute_raw("ROLLBACK")

    def savepoint(self) -> None:
        self.execute_raw("SAVEPOINT write")

    def release(self) -> None:
        self.execute_raw("RELEASE write")

    def rollback_to_savepoint(self) -> None:
        self.execute_raw("ROLLBACK TO write")

    def usable(self) -> bool:
        return bool(self.connection.in_transaction)

    def recover(self) -> None:
        if self.connection.in_transaction:
            self.rollback()

    def rest(self) -> None:
        if self.between_batches is not None:
            self.between_batches(self.connection)

    def translate(self, error: BaseException) -> RecollectError | None:
        return translate(error)


def translate(error: BaseException) -> RecollectError | None:
    """An error of apsw as one of ours; None if it is something else."""
    if not isinstance(error, apsw.Error):
        return None
    if isinstance(error, apsw.InterruptError):
        return ShuttingDown("The orchestrator is shutting down; nothing was done.")
    if isinstance(error, apsw.ConstraintError):
        return AlreadyExists(f"The storage refused a duplicate; nothing was written ({error}).")
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in UNREADABLE:
        return not_whole(
            f"The file of the database cannot be read: {error}. `recollect doctor` looks closer; "
            "if the disk is failing, bring a backup back on another one.",
            reason=str(error),
        )
    if isinstance(error, apsw.FullError | apsw.IOError):
        return StorageFull(
            "The disk is full or cannot be written; nothing was written. Free some space: "
            "writing goes on by itself.",
            reason=str(error),
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return damaged(str(error))
    return StorageFailed(f"The database refused: {error}. Nothing was written.", reason=str(error))


def damaged(reason: str) -> StorageFailed:
    """What whoever asks a damaged database is told."""
    return not_whole(
        "The database is damaged; nothing was written. `recollect doctor` looks closer, "
        "`recollect restore BACKUP --data NEW_FOLDER` brings a backup back.",
        reason=reason,
    )
