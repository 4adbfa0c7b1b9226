"""The connections that read, and the threads that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import psycopg_pool
import structlog

from recollect.orchestrator.storage.interface import Params, ReadFunction, Row, T
from recollect.orchestrator.storage.postgres.errors import is_cut_off, translate
from recollect.orchestrator.storage.postgres.session import (
    CONNECT_TIMEOUT_S,
    PostgresSession,
    cut,
    in_full,
)
from recollect.orchestrator.storage.postgres.values import adapt
from recollect.protocol.errors import ShuttingDown

log = structlog.get_logger()

RECONNECT_S_MAX = 1.0
"""How long the pool tries on to replace a connection. It does so ever more seldom, up to minutes;
once it has given up, whoever asks next has it try at once."""
CANCEL_S_MAX = 1.0
CLOSE_S_MAX = 5.0
"""How long what is being read is waited for when all is closed."""
# A walk through the index of vectors goes on until enough fit; 100 at once find about all of the
# ten nearest.
READER = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET hnsw.ef_search = 100",
    "SET hnsw.iterative_scan = relaxed_order",
)


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


def _try_again(pool: psycopg_pool.ConnectionPool[Any]) -> None:
    """Have the pool connect anew for those who wait already."""
    if pool.get_stats()["requests_waiting"]:
        pool.check()


class ReaderPool:
    """Answers reads, each on one snapshot, as many at a time as it has connections."""

    def __init__(self, url: str, readers: int, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connections = psycopg_pool.ConnectionPool(
            in_full(url),
            min_size=1,
            max_size=readers,
            timeout=CONNECT_TIMEOUT_S,
            reconnect_timeout=RECONNECT_S_MAX,
            reconnect_failed=_try_again,
            kwargs={"autocommit": True},
            configure=_prepare_reader,
            open=True,
        )
        self._threads = ThreadPoolExecutor(readers, thread_name_prefix="storage-reader")
        self._closing = False
        # Those that somebody reads on. Each thread has its own in it, and whoever closes looks.
        self._used: set[psycopg.Connection[Row]] = set()

    def read(self, function: ReadFunction[T], *, asks_once: bool) -> asyncio.Future[T]:
        """What a function reads."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._threads.submit(self._answer, future, function, asks_once)
        return future

    def run(self, function: Callable[[psycopg.Connection[Row]], T]) -> asyncio.Future[T]:
        """What a function has done that needs a connection outside of any transaction."""
        return self._loop.run_in_executor(self._threads, self._run, function)

    def close(self) -> None:
        """Let those finish that read, within a bound, refuse those who wait, and part from the
        server."""
        self._closing = True
        impatience = threading.Timer(CLOSE_S_MAX, self._give_up)
        impatience.start()
        self._threads.shutdown(wait=True)
        impatience.cancel()
        self._connections.close()

    def _give_up(self) -> None:
        for connection in list(self._used):
            # Else the server would go on with it to its end.
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_S_MAX)
            cut(connection)
        # Those who wait for a connection are told that none comes.
        self._connections.close(timeout=1.0)

    def _run(self, function: Callable[[psycopg.Connection[Row]], T]) -> T:
        self._check_open()
        try:
            with self._connections.connection() as connection:
                self._used.add(connection)
                try:
                    return function(connection)
                finally:
                    self._used.discard(connection)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            raise translate(error) or error from error

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
                self._connections.check()
                self._ask(future, function, asks_once)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            self._settle(future, None, translate(error) or error)
        except BaseException as error:
            self._settle(future, None, error)

    def _ask(self, future: asyncio.Future[T], function: ReadFunction[T], asks_once: bool) -> None:
        self._check_open()
        with self._connections.connection() as connection:
            self._used.add(connection)
            try:
                if asks_once:
                    try:
                        return self._settle(future, function(OneQuestion(connection)), None)
                    except AskedAgain:
                        pass
                with snapshot(connection):
                    self._settle(future, function(PostgresSession(connection)), None)
            finally:
                self._used.discard(connection)

    def _check_open(self) -> None:
        if self._closing:
            raise ShuttingDown("The orchestrator is shutting down; nothing was read.")

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
