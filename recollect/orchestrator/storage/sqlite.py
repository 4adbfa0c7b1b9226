"""SQLite, embedded: one writing connection, a pool of readers, point reads on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import structlog

from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.checkpoints import Checkpointer
from recollect.orchestrator.storage.copies import (
    DATABASE_NAME,
    PROBLEMS_MAX,
    back_up,
    problems_of,
)
from recollect.orchestrator.storage.damage import DamageCheck, refuse_lost, refusing_unreadable
from recollect.orchestrator.storage.group_commit import GroupCommitWriter
from recollect.orchestrator.storage.interface import (
    CommitObserver,
    Params,
    PrefetchFunction,
    ReadFunction,
    Row,
    SealFunction,
    T,
    WriteFunction,
)
from recollect.orchestrator.storage.optimising import optimise
from recollect.orchestrator.storage.pages import Misfit
from recollect.orchestrator.storage.properties import GET, REMOVE
from recollect.orchestrator.storage.slack import Wiping
from recollect.protocol.errors import (
    AlreadyExists,
    RecollectError,
    StorageFailed,
    StorageFull,
)

log = structlog.get_logger()

BUSY_TIMEOUT_MS = 10_000
STATEMENTS_CACHED = 256
WAL_BYTES_KEPT = 64 * 1024 * 1024
FIND_PROPERTIES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'properties'"
LEFTOVERS = "leftovers"
"""Marks a file in which deleted rows were not overwritten from its beginning."""
SCRUBS_MAX = 3  # one that wipes, one that looks again, and one more under ceaseless writes
SCRUB_TRIES_MAX = 50
SCRUB_PAUSE_S = 0.03
SCRUB_PAUSE_S_MAX = 1.0
SCRUB_BUSY_MS = 100  # for readers; the writer waits as well


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
    if isinstance(error, apsw.ConstraintError):
        return AlreadyExists(f"The storage refused a duplicate; nothing was written ({error}).")
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
    return StorageFailed(
        "The database is damaged; nothing was written. `recollect doctor` looks closer, "
        "`recollect restore BACKUP --data NEW_FOLDER` brings a backup back.",
        reason=reason,
    )


class SqliteStorage:
    """A database file in the data folder."""

    inline_reads = True
    size_sql: str | None = None

    def __init__(
        self,
        folder: Path,
        *,
        loop: asyncio.AbstractEventLoop,
        prefetch: PrefetchFunction | None = None,
        seals: Iterable[SealFunction] = (),
        readers: int = 4,
        group_commit_max: int = 256,
        write_queue_max: int = 4096,
        page_cache_mb: int = 64,
        check_at_once_mb: int = 256,
        migrations_folder: Path = migrations.FOLDER / "sqlite",
    ) -> None:
        self.path = folder / DATABASE_NAME
        self._loop = loop
        self._page_cache_mb = page_cache_mb
        refuse_lost(self.path)
        with refusing_unreadable(self.path):
            writer_session = SqliteSession(self.path, page_cache_mb=page_cache_mb, readonly=False)
        self._writer_session = writer_session
        self._damage = DamageCheck(self.path, self._connect, at_once_mb=check_at_once_mb)
        self._damage.run(writer_session.connection)
        self.schema = apply_migrations(writer_session, migrations_folder)
        self._rewritten = rewrite_once(writer_session)
        # Used by the event loop's thread alone.
        self._inline = SqliteSession(self.path, page_cache_mb=page_cache_mb, readonly=True)
        self._local = threading.local()
        self._sessions: list[SqliteSession] = []
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="storage-reader")
        self._writer = GroupCommitWriter(
            writer_session,
            loop=loop,
            prefetch=prefetch,
            seals=seals,
            batch_max=group_commit_max,
            queue_length_max=write_queue_max,
        )
        self._closing = threading.Event()
        # Held by whoever scrubs.
        self._scrubbing = threading.Lock()
        self._checkpointer = Checkpointer(writer_session.connection, self._connect)
        writer_session.between_batches = self._checkpointer.move_rest
        [(seq, _)] = writer_session.execute(journal.READ_LEDGER)
        self._writer.start(int(seq))

    @property
    def committed_seq(self) -> int:
        return self._writer.committed_seq

    async def reached_seq(self) -> int:
        return self.committed_seq

    def read_inline(self, function: ReadFunction[T]) -> T:
        if self._damage.found is not None:
            raise damaged(self._damage.found)
        try:
            return function(self._inline)
        except apsw.Error as error:
            raise translate(error) or error from error

    def read(self, function: ReadFunction[T], *, asks_once: bool = False) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._readers, self._read, function)

    def write(self, function: WriteFunction[T]) -> asyncio.Future[T]:
        if self._damage.found is not None:
            raise damaged(self._damage.found)
        return self._writer.submit(function)

    def watch(self, observer: CommitObserver) -> None:
        self._writer.observer = observer

    def write_queue_length(self) -> int:
        return self._writer.queue_length()

    def backup(self, folder: str) -> asyncio.Future[dict[str, Any]]:
        return self._loop.run_in_executor(self._readers, self._back_up, Path(folder))

    def problems_of_backup(self, folder: str) -> asyncio.Future[list[str]]:
        check = partial(problems_of, Path(folder) / DATABASE_NAME, quick=True)
        return self._loop.run_in_executor(None, check)

    def scrub(self) -> asyncio.Future[bool]:
        return self._loop.run_in_executor(None, self._scrub)

    def optimise(self) -> asyncio.Future[dict[str, Any]]:
        return self._loop.run_in_executor(None, self._optimise)

    def problems(self, *, quick: bool) -> asyncio.Future[list[str]]:
        return self._loop.run_in_executor(self._readers, self._problems, quick)

    def describe(self) -> dict[str, Any]:
        sizes = {p.name: p.stat().st_size for p in self.path.parent.glob(f"{self.path.name}*")}
        return {
            "kind": "sqlite",
            "engine": apsw.sqlite_lib_version(),
            "schema": self.schema,
            "bytes": sum(sizes.values()),
            "log_bytes": sizes.get(f"{self.path.name}-wal", 0),
            "write_queue_length": self._writer.queue_length(),
            "write_lag_s": self._writer.lag_s(),
            "write_wait_s": self._writer.last_wait_s,
            "commits": self._writer.batches,
            "transactions": self._writer.transactions,
        }

    def close(self) -> None:
        self._closing.set()
        self._damage.close()
        self._writer.close()
        with self._scrubbing:
            self._checkpointer.close()
        self._readers.shutdown(wait=True)
        for session in (*self._sessions, self._inline, self._writer_session):
            session.connection.close()

    def _problems(self, quick: bool) -> list[str]:
        """What SQLite finds wrong.

        Through a connection of its own: one that has searched by words keeps how the full text was
        laid out, and the check, unlike a search, does not notice that a writer has changed that.
        """
        check = "quick_check" if quick else "integrity_check"
        try:
            session = SqliteSession(self.path, page_cache_mb=self._page_cache_mb, readonly=True)
            with contextlib.closing(session.connection):
                found = session.execute(f"PRAGMA {check}({PROBLEMS_MAX})")
        except apsw.Error as error:
            raise translate(error) or error from error
        return [str(text) for (text,) in found if text != "ok"]

    def _back_up(self, folder: Path) -> dict[str, Any]:
        try:
            return back_up(self.path, folder)
        except apsw.Error as error:
            raise translate(error) or error from error

    def _optimise(self) -> dict[str, Any]:
        before, free_bytes = self.describe(), 0
        try:
            # Not while the file is scrubbed, which moves the log as well; nor once it is closed.
            with self._scrubbing:
                if not self._closing.is_set():
                    free_bytes = optimise(self._connect, self._checkpointer)
        except apsw.Error as error:
            raise translate(error) or error from error
        after = self.describe()
        return {
            "before_bytes": before["bytes"],
            "after_bytes": after["bytes"],
            "log_bytes": after["log_bytes"],
            "free_bytes": free_bytes,
        }

    def _scrub(self) -> bool:
        """Wipe what deleted rows left in the file, and empty the log; whether both were done."""
        try:
            with self._scrubbing:
                # Once it is closed, the folder may be somebody else's.
                return self._rewritten and not self._closing.is_set() and self._scrub_file()
        except apsw.Error as error:
            raise translate(error) or error from error
        except Misfit as reason:
            log.error("The file cannot be scrubbed.", action="scrub", reason=str(reason))
            return False

    def _scrub_file(self) -> bool:
        with (
            contextlib.closing(self._connect()) as writer,
            contextlib.closing(self._connect()) as mover,
        ):
            mover.set_busy_timeout(SCRUB_BUSY_MS)
            return self._wipe(writer, mover) and self._empty_log(mover)

    def _wipe(self, writer: apsw.Connection, mover: apsw.Connection) -> bool:
        wiping = Wiping(
            self.path,
            writer,
            moved=lambda: self._checkpointer.move(mover),
            go_on=lambda: not self._closing.is_set(),
            pause=self._closing.wait,
        )
        for _ in range(SCRUBS_MAX):
            wiped = wiping.once(SCRUB_TRIES_MAX)
            if wiped is None:
                return False
            if wiped == 0:
                break
        # Whatever the last look still found was left there by rows that moved since: it is of what
        # lives, for what is deleted was overwritten before the first look.
        return True

    def _empty_log(self, mover: apsw.Connection) -> bool:
        pause_s = SCRUB_PAUSE_S
        for _ in range(SCRUB_TRIES_MAX):
            if self._closing.is_set():
                return False
            if self._checkpointer.empty(mover):
                return True
            self._closing.wait(pause_s)
            pause_s = min(2 * pause_s, SCRUB_PAUSE_S_MAX)
        return False

    def _connect(self) -> apsw.Connection:
        session = SqliteSession(self.path, page_cache_mb=1, readonly=False)
        return session.connection

    def _read(self, function: ReadFunction[T]) -> T:
        session: SqliteSession | None = getattr(self._local, "session", None)
        if self._damage.found is not None:
            raise damaged(self._damage.found)
        try:
            if session is None:
                session = SqliteSession(self.path, page_cache_mb=self._page_cache_mb, readonly=True)
                self._local.session = session
                self._sessions.append(session)
            session.execute_raw("BEGIN")
            try:
                return function(session)
            finally:
                session.recover()
        except apsw.Error as error:
            raise translate(error) or error from error


def apply_migrations(session: SqliteSession, folder: Path) -> int:
    """Bring the schema up to date; returns its number."""
    session.begin()
    try:
        before, after = migrations.migrate(session, folder)
        session.commit()
    finally:
        session.recover()
    if before != after:
        log.info("The schema is up to date.", action="migrate", before=before, after=after)
    return after


def rewrite_once(session: SqliteSession) -> bool:
    """Rewrite a file in which deleted rows were not always overwritten; whether none is left.

    That is so once, after the upgrade that brought the overwriting, before anybody is served.
    """
    if not session.execute(FIND_PROPERTIES) or not session.execute(GET, (LEFTOVERS,)):
        return True
    log.info("The database is rewritten, so that nothing deleted is left.", action="rewrite")
    try:
        # It may be large: by way of a file, and not in memory.
        session.connection.pragma("temp_store", "file")
        session.execute("VACUUM")
        session.execute(REMOVE, (LEFTOVERS,))
    except apsw.Error as error:
        log.warning("The database was not rewritten.", action="rewrite", reason=str(error))
        return False
    finally:
        session.connection.pragma("temp_store", "memory")
    return True
