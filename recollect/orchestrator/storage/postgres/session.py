"""Connections behind the common interface, and the one that writes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import LiteralString

import psycopg
from psycopg import conninfo

from recollect.orchestrator.storage.interface import Params, Row
from recollect.orchestrator.storage.postgres.claims import Claim, claim_shared
from recollect.orchestrator.storage.postgres.errors import translate
from recollect.orchestrator.storage.postgres.values import adapt
from recollect.protocol.errors import RecollectError, ShuttingDown

CONNECT_TIMEOUT_S = 10
# A server that is gone without a word, and what lies between that forgets a connection, is noticed
# after some ten seconds, whether or not there was something to be answered.
DEFAULTS = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""What an address of a server means where it does not say it itself."""
# A transaction asks the server for something every few milliseconds.
STILL_MS_MAX = 5_000
# What is answered is on disk, also where the server is set up to answer before; stricter ways of it
# stay as they are.
ON_DISK = """
SELECT set_config('synchronous_commit', 'on', FALSE)
WHERE current_setting('synchronous_commit') = 'off'
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


class PostgresWriterSession(PostgresSession):
    """The writing connection, which comes back by itself when the server restarts."""

    sole_writer = False

    def __init__(self, url: str, claim: Claim = claim_shared) -> None:
        self._url = url
        self._claim = claim
        self._given_up = False
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
        if self._given_up:
            raise ShuttingDown("The orchestrator is shutting down; nothing was written.")
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

    def give_up(self) -> None:
        """Have whoever waits for the server wait no longer, and connect to it no more. Any thread
        may ask for it."""
        self._given_up = True
        cut(self.connection)

    def translate(self, error: BaseException) -> RecollectError | None:
        return translate(error)

    def _connected(self) -> psycopg.Connection[Row]:
        connection = connect(self._url)
        try:
            self._claim(connection)
            connection.execute(ON_DISK)
        except BaseException:
            connection.close()
            raise
        return connection


def cut(connection: psycopg.Connection[Row]) -> None:
    """End a connection under whoever waits for an answer on it."""
    # On a descriptor of our own: the other may be closed meanwhile, and its number given away.
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def connect(url: str) -> psycopg.Connection[Row]:
    """A connection on which transactions are begun by hand."""
    connection = psycopg.connect(in_full(url), autocommit=True)
    adapt(connection)
    return connection


def in_full(url: str) -> str:
    """An address with what it leaves open."""
    said = conninfo.conninfo_to_dict(url)
    return conninfo.make_conninfo(url, **{k: v for k, v in DEFAULTS.items() if k not in said})
