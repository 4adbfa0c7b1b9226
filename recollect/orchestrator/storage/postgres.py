"""PostgreSQL: the same rows for any number of orchestrators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, LiteralString

import structlog

from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.copies import read_manifest
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
from recollect.protocol.errors import (
    AlreadyExists,
    InvalidArgument,
    RecollectError,
    StorageFailed,
    StorageFull,
)

try:
    import psycopg
    import psycopg_pool
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "PostgreSQL storage needs psycopg: pip install 'recollect[postgres]'", name="psycopg"
    ) from missing

from recollect.orchestrator.storage.postgres_claims import Claim, claim_shared
from recollect.orchestrator.storage.postgres_schema import apply_migrations
from recollect.orchestrator.storage.postgres_values import adapt

log = structlog.get_logger()

CONNECT_TIMEOUT_S = 10
# A transaction asks the server for something every few milliseconds.
STILL_MS_MAX = 5_000
SIZE = "SELECT pg_database_size(current_database())"
# A walk through the index of vectors goes on until enough fit; 100 at once find about all of the
# ten nearest.
READER = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET hnsw.ef_search = 100",
    "SET hnsw.iterative_scan = relaxed_order",
)
# How the server's errors begin by which a connection ends; one that just ends has none.
CUT_OFF = "08", "57P"
# Where the rows of a memory are.
SCRUB = """
VACUUM memories, versions, memory_words, vectors, shadow_vectors, relationships, group_members,
    document_chunks
"""


@lru_cache(maxsize=1024)
def in_dialect(sql: str) -> LiteralString:
    """The common dialect's `?` as the server's own `$1`, `$2`.

    Not as psycopg's `%s`: it reads a statement with more than 50 of them anew each time, which
    takes longer than all else that it does.
    """
    first, *others = sql.split("?")
    parts = (f"${number}{part}" for number, part in enumerate(others, 1))
    return "".join((first, *parts))


class PostgresSession:
    """One psycopg connection behind the common interface."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        cursor = psycopg.RawCursor(self.connection)
        cursor.execute(in_dialect(sql), tuple(params))
        # Not by `description`, which makes an object of each of its columns to say so.
        result = cursor.pgresult
        return cursor.fetchall() if result is not None and result.nfields else []

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        with psycopg.RawCursor(self.connection) as cursor:
            cursor.executemany(in_dialect(sql), [tuple(row) for row in rows])


class AskedAgain(Exception):
    """A read that was to be one statement goes on with another."""


class OneQuestion(PostgresSession):
    """For a read of one statement, which sees one moment without a transaction around it."""

    asked = False

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        if self.asked:
            raise AskedAgain
        self.asked = True
        return super().execute(sql, params)


class PostgresWriterSession(PostgresSession):
    """The writing connection, which comes back by itself when the server restarts."""

    sole_writer = False

    def __init__(self, url: str, claim: Claim = claim_shared) -> None:
        self._url = url
        self._claim = claim
        super().__init__(self._connected())

    def begin(self) -> None:
        if self.usable():
            try:
                self.execute("BEGIN")
                return
            except psycopg.OperationalError:
                # The server may have been restarted since the last batch: nothing is begun yet.
                if self.usable():
                    raise
        self.connection = self._connected()
        self.limit_stillness()
        self.execute("BEGIN")

    def limit_stillness(self) -> None:
        """Have the server end what stands still in the midst of a write: all others wait for it."""
        self.execute(f"SET idle_in_transaction_session_timeout = {STILL_MS_MAX}")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def savepoint(self) -> None:
        self.execute("SAVEPOINT write")

    def release(self) -> None:
        self.execute("RELEASE SAVEPOINT write")

    def rollback_to_savepoint(self) -> None:
        self.execute("ROLLBACK TO SAVEPOINT write")

    def usable(self) -> bool:
        return not (self.connection.closed or self.connection.broken)

    def recover(self) -> None:
        if self.usable() and self.connection.info.transaction_status != 0:
            self.rollback()

    def rest(self) -> None:
        """Nothing is due: the server looks after its own log."""

    def translate(self, error: BaseException) -> RecollectError | None:
        return translate(error)

    def _connected(self) -> psycopg.Connection[Row]:
        connection = connect(self._url)
        try:
            self._claim(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def connect(url: str) -> psycopg.Connection[Row]:
    """A connection on which transactions are begun by hand."""
    connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
    adapt(connection)
    return connection


def _prepare_reader(connection: psycopg.Connection[Row]) -> None:
    """Every transaction sees one moment and changes nothing."""
    adapt(connection)
    for statement in READER:
        connection.execute(statement)


@contextmanager
def snapshot(connection: psycopg.Connection[Row]) -> Iterator[None]:
    """A transaction of a reader. It changes nothing, so it is committed whatever happens.

    By libpq itself: psycopg's own takes longer than the server does for the two statements.
    """
    _command(connection, b"BEGIN")
    try:
        yield
    finally:
        if not (connection.closed or connection.broken):
            _command(connection, b"COMMIT")


def _command(connection: psycopg.Connection[Row], sql: bytes) -> None:
    if connection.pgconn.exec_(sql).status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise psycopg.OperationalError(connection.pgconn.get_error_message())


def translate(error: BaseException) -> RecollectError | None:
    """An error of psycopg as one of ours; None if it is something else."""
    if isinstance(error, psycopg_pool.PoolTimeout):
        return StorageFailed("PostgreSQL does not answer; nothing was written.")
    if not isinstance(error, psycopg.Error):
        return None
    if isinstance(error, psycopg.errors.UniqueViolation):
        return AlreadyExists(f"The storage refused a duplicate; nothing was written ({error}).")
    if isinstance(error, psycopg.DataError | psycopg.errors.UndefinedFunction):
        return InvalidArgument(f"PostgreSQL cannot take a value: {error}.")
    if isinstance(error, psycopg.errors.DiskFull):
        return StorageFull(
            "PostgreSQL's disk is full; nothing was written. Free some space: writing goes on by "
            "itself.",
            reason=str(error),
        )
    # The rest of what the server says may quote the row, and so what is to be remembered.
    reason = error.diag.message_primary or str(error)
    if is_cut_off(error):
        return StorageFailed(
            f"The connection to PostgreSQL was cut: {reason}. What was to be written may be stored "
            "or not: send it again with the same key, and it is stored once.",
            reason=reason,
        )
    return StorageFailed(f"PostgreSQL refused: {reason}. Nothing was written.", reason=reason)


def is_cut_off(error: psycopg.Error) -> bool:
    """Whether the connection ended with it."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(
        CUT_OFF
    )


class PostgresStorage:
    """A database on a PostgreSQL server."""

    inline_reads = False
    size_sql: str | None = "SELECT pg_database_size(current_database())"

    def __init__(
        self,
        url: str,
        *,
        loop: asyncio.AbstractEventLoop,
        prefetch: PrefetchFunction | None = None,
        seals: Iterable[SealFunction] = (),
        readers: int = 4,
        group_commit_max: int = 256,
        write_queue_max: int = 4096,
        migrations_folder: Path = migrations.FOLDER / "postgres",
    ) -> None:
        self._loop = loop
        self._url = url
        writer_session = PostgresWriterSession(url)
        self._writer_session = writer_session
        # Asked once: the connection may be away when somebody wants to know.
        self._engine = writer_session.connection.info.server_version
        self.schema = apply_migrations(writer_session, migrations_folder)
        # The migrations may have brought new types.
        adapt(writer_session.connection)
        writer_session.limit_stillness()
        self._pool = psycopg_pool.ConnectionPool(
            url,
            min_size=1,
            max_size=readers,
            timeout=CONNECT_TIMEOUT_S,
            kwargs={"autocommit": True},
            configure=_prepare_reader,
            open=True,
        )
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="storage-reader")
        self._writer = GroupCommitWriter(
            writer_session,
            loop=loop,
            prefetch=prefetch,
            seals=seals,
            batch_max=group_commit_max,
            queue_length_max=write_queue_max,
        )
        [(seq, _)] = writer_session.execute(journal.READ_LEDGER)
        # The last change that was seen in the store, of whomever. Set on the event loop alone.
        self._seen_seq = int(seq)
        self._writer.start(int(seq))

    @property
    def committed_seq(self) -> int:
        return max(self._writer.committed_seq, self._seen_seq)

    async def reached_seq(self) -> int:
        [(seq, _)] = await self.read(lambda session: session.execute(journal.READ_LEDGER))
        self._seen_seq = max(self._seen_seq, int(seq))
        return self.committed_seq

    def read_inline(self, function: ReadFunction[T]) -> T:
        raise AssertionError("a server's rows are never read on the event loop")

    def read(self, function: ReadFunction[T], *, asks_once: bool = False) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._readers.submit(self._answer, future, function, asks_once)
        return future

    def write(self, function: WriteFunction[T]) -> asyncio.Future[T]:
        return self._writer.submit(function)

    def watch(self, observer: CommitObserver) -> None:
        self._writer.observer = observer

    def write_queue_length(self) -> int:
        return self._writer.queue_length()

    def backup(self, folder: str) -> asyncio.Future[dict[str, Any]]:
        return self._loop.run_in_executor(None, self._back_up, Path(folder))

    def problems_of_backup(self, folder: str) -> asyncio.Future[list[str]]:
        return self._loop.run_in_executor(None, self._problems_of_backup, Path(folder))

    def scrub(self) -> asyncio.Future[bool]:
        return self._loop.run_in_executor(self._readers, self._scrub)

    def optimise(self) -> asyncio.Future[dict[str, Any]]:
        return self._loop.run_in_executor(self._readers, self._optimise)

    def problems(self, *, quick: bool) -> asyncio.Future[list[str]]:
        # The server checks its own pages; what it refuses to read is an error.
        return self.read(lambda session: [])

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "postgresql",
            "engine": "{}.{}".format(*divmod(self._engine, 10_000)),
            "schema": self.schema,
            "write_queue_length": self._writer.queue_length(),
            "write_lag_s": self._writer.lag_s(),
            "write_wait_s": self._writer.last_wait_s,
            "commits": self._writer.batches,
            "transactions": self._writer.transactions,
        }

    def close(self) -> None:
        self._writer.close()
        self._readers.shutdown(wait=True)
        self._pool.close()
        self._writer_session.connection.close()

    def _back_up(self, folder: Path) -> dict[str, Any]:
        from recollect.orchestrator.storage import postgres_copies  # which needs this module

        try:
            return postgres_copies.back_up(self._url, folder)
        except psycopg.Error as error:
            raise translate(error) or error from error

    def _problems_of_backup(self, folder: Path) -> list[str]:
        from recollect.orchestrator.storage import postgres_copies  # which needs this module

        return postgres_copies.problems_of(folder, read_manifest(folder))

    def _scrub(self) -> bool:
        """Have the server take dead rows out of its tables; its own log and files are its own."""
        try:
            with self._pool.connection() as connection:
                connection.execute(SCRUB)
            return True
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise translate(error) or error from error

    def _optimise(self) -> dict[str, Any]:
        """Have the server take dead rows out of its tables and renew what it knows of them."""
        try:
            with self._pool.connection() as connection:
                [(before,)] = connection.execute(SIZE).fetchall()
                connection.execute("VACUUM (ANALYZE)")
                [(after,)] = connection.execute(SIZE).fetchall()
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise translate(error) or error from error
        return {"before_bytes": before, "after_bytes": after, "log_bytes": 0, "free_bytes": 0}

    def _answer(
        self, future: asyncio.Future[T], function: ReadFunction[T], asks_once: bool
    ) -> None:
        """Run a read and answer it, before its transaction is ended: that is one wait less."""
        if future.cancelled():
            return
        try:
            try:
                self._ask(future, function, asks_once)
            except psycopg.OperationalError as error:
                if not is_cut_off(error):
                    raise
                # The server was restarted, perhaps: what it has ended is thrown away.
                self._pool.check()
                self._ask(future, function, asks_once)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            self._settle(future, None, translate(error) or error)
        except BaseException as error:
            self._settle(future, None, error)

    def _ask(self, future: asyncio.Future[T], function: ReadFunction[T], asks_once: bool) -> None:
        with self._pool.connection() as connection:
            if asks_once:
                try:
                    return self._settle(future, function(OneQuestion(connection)), None)
                except AskedAgain:
                    pass
            with snapshot(connection):
                self._settle(future, function(PostgresSession(connection)), None)

    def _settle(
        self, future: asyncio.Future[T], result: T | None, error: BaseException | None
    ) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, future, result, error)
        except RuntimeError:  # the loop has ended: nobody waits any more
            log.debug("The loop ended before a read was answered.", action="read")


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Answer a read, unless that was done or nobody waits for it any more."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
