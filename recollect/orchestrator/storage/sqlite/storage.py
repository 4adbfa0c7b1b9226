"""SQLite, embedded: one writing connection, a pool of readers, point reads on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import structlog

from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.group_commit import GroupCommitWriter
from recollect.orchestrator.storage.interface import (
    CommitObserver,
    PrefetchFunction,
    ReadFunction,
    SealFunction,
    T,
    WriteFunction,
)
from recollect.orchestrator.storage.sqlite.checkpoints import Checkpointer
from recollect.orchestrator.storage.sqlite.copies import RESTORING, back_up, problems_of
from recollect.orchestrator.storage.sqlite.damage import (
    LOOK_STEPS,
    DamageCheck,
    found_in,
    refuse_lost,
    refusing_unreadable,
)
from recollect.orchestrator.storage.sqlite.optimising import optimise
from recollect.orchestrator.storage.sqlite.pages import Misfit
from recollect.orchestrator.storage.sqlite.schema import apply_migrations, rewrite_once
from recollect.orchestrator.storage.sqlite.scrubbing import scrub
from recollect.orchestrator.storage.sqlite.session import SqliteSession, damaged, translate
from recollect.protocol.errors import ShuttingDown

log = structlog.get_logger()

READER_SHARE = 4
CLOSE_S_MAX = 5.0
"""How long what is being read is waited for when all is closed."""


class SqliteStorage:
    """A database file in the data folder."""

    inline_reads = True
    size_sql: str | None = None
    restoring = RESTORING

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
        # What a reader keeps is worth little: a commit of somebody else may end it, and what it
        # has to read again mostly lies in the system's own cache.
        self._reader_cache_mb = max(1, page_cache_mb // READER_SHARE)
        refuse_lost(self.path)
        with refusing_unreadable(self.path):
            writer_session = SqliteSession(self.path, page_cache_mb=page_cache_mb, readonly=False)
        self._writer_session = writer_session
        self._damage = DamageCheck(self.path, self._connect, at_once_mb=check_at_once_mb)
        self._damage.run(writer_session.connection)
        self.schema = apply_migrations(writer_session, migrations_folder)
        self._rewritten = rewrite_once(writer_session)
        # Used by the event loop's thread alone.
        self._inline = SqliteSession(self.path, page_cache_mb=self._reader_cache_mb, readonly=True)
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
        return self._loop.run_in_executor(None, self._problems_of_backup, Path(folder))

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
        impatience = threading.Timer(CLOSE_S_MAX, self._give_up)
        impatience.start()
        self._readers.shutdown(wait=True)
        impatience.cancel()
        for session in (*self._sessions, self._inline, self._writer_session):
            session.connection.close()

    def _give_up(self) -> None:
        """Have what is still being read end."""
        for session in list(self._sessions):
            session.connection.interrupt()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise ShuttingDown("The orchestrator is shutting down; nothing was read.")

    def _problems_of_backup(self, folder: Path) -> list[str]:
        try:
            database = folder / DATABASE_NAME
            return problems_of(database, quick=True, stopped=self._closing.is_set)
        except apsw.Error as error:
            raise translate(error) or error from error

    def _problems(self, quick: bool) -> list[str]:
        """What SQLite finds wrong.

        Through a connection of its own: one that has searched by words keeps how the full text was
        laid out, and the check, unlike a search, does not notice that a writer has changed that.
        """
        self._check_open()
        try:
            session = SqliteSession(self.path, page_cache_mb=self._reader_cache_mb, readonly=True)
            session.connection.set_progress_handler(self._closing.is_set, LOOK_STEPS)
            with contextlib.closing(session.connection):
                return found_in(session.connection, quick=quick)
        except apsw.Error as error:
            raise translate(error) or error from error

    def _back_up(self, folder: Path) -> dict[str, Any]:
        self._check_open()
        try:
            return back_up(self.path, folder, self._closing.is_set)
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
                if not self._rewritten or self._closing.is_set():
                    return False
                return scrub(self.path, self._connect, self._checkpointer, self._closing)
        except apsw.Error as error:
            raise translate(error) or error from error
        except Misfit as reason:
            log.error("The file cannot be scrubbed.", action="scrub", reason=str(reason))
            return False

    def _connect(self) -> apsw.Connection:
        session = SqliteSession(self.path, page_cache_mb=1, readonly=False)
        return session.connection

    def _read(self, function: ReadFunction[T]) -> T:
        self._check_open()
        session: SqliteSession | None = getattr(self._local, "session", None)
        if self._damage.found is not None:
            raise damaged(self._damage.found)
        try:
            if session is None:
                cache_mb = self._reader_cache_mb
                session = SqliteSession(self.path, page_cache_mb=cache_mb, readonly=True)
                self._local.session = session
                self._sessions.append(session)
            session.execute_raw("BEGIN")
            try:
                return function(session)
            finally:
                session.recover()
        except apsw.Error as error:
            raise translate(error) or error from error
