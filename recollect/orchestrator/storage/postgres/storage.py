"""A store on a PostgreSQL server: one writing connection, a pool of readers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import sql

from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.copies import read_manifest
from recollect.orchestrator.storage.group_commit import GroupCommitWriter
from recollect.orchestrator.storage.interface import (
    CommitObserver,
    Committed,
    PrefetchFunction,
    ReadFunction,
    Row,
    SealFunction,
    T,
    WriteFunction,
)
from recollect.orchestrator.storage.postgres.copies import RESTORING, back_up, problems_of
from recollect.orchestrator.storage.postgres.errors import translate
from recollect.orchestrator.storage.postgres.readers import CLOSE_S_MAX, ReaderPool
from recollect.orchestrator.storage.postgres.schema import apply_migrations
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from recollect.orchestrator.storage.postgres.values import adapt

log = structlog.get_logger()

# Of this store: others may be in other schemas of the same database.
SIZE = """
SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class
WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'
"""
SCHEMA = "SELECT current_schema()"
TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r' ORDER BY relname
"""


class PostgresStorage:
    """A database on a PostgreSQL server."""

    inline_reads = False
    size_sql: str | None = SIZE
    restoring = RESTORING

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
        self._closing = threading.Event()
        writer_session = PostgresWriterSession(url)
        self._writer_session = writer_session
        # Asked once: the connection may be away when somebody wants to know.
        self._engine = writer_session.connection.info.server_version
        self.schema = apply_migrations(writer_session, migrations_folder)
        # The migrations may have brought new types.
        adapt(writer_session.connection)
        writer_session.limit_stillness()
        self._readers = ReaderPool(url, readers, loop)
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
        known = self.committed_seq
        [(seq, _)] = await self.read(lambda session: session.execute(journal.READ_LEDGER))
        if int(seq) < known and known == self.committed_seq:
            self._go_back(known, int(seq))
        self._seen_seq = max(self._seen_seq, int(seq))
        return self.committed_seq

    def _go_back(self, known: int, seq: int) -> None:
        """A server has taken over that had not got all of what the other had acknowledged."""
        log.error(
            "The store has gone back: its last changes are lost. A standby that is written to "
            "synchronously loses none.",
            action="went_back",
            before=known,
            after=seq,
        )
        # The writer reads where the journal ends at each batch, so what it knows is only told.
        self._seen_seq = self._writer.committed_seq = seq
        if self._writer.observer is not None:
            self._writer.observer(Committed(seq, seq, []))

    def read_inline(self, function: ReadFunction[T]) -> T:
        raise AssertionError("a server's rows are never read on the event loop")

    def read(self, function: ReadFunction[T], *, asks_once: bool = False) -> asyncio.Future[T]:
        return self._readers.read(function, asks_once=asks_once)

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
        return self._readers.run(_scrub)

    def optimise(self) -> asyncio.Future[dict[str, Any]]:
        return self._readers.run(_optimise)

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
        self._closing.set()
        impatience = threading.Timer(CLOSE_S_MAX, self._writer_session.give_up)
        impatience.start()
        self._writer.close()
        impatience.cancel()
        self._readers.close()
        self._writer_session.connection.close()

    def _back_up(self, folder: Path) -> dict[str, Any]:
        try:
            return back_up(self._url, folder, self._closing.is_set)
        except psycopg.Error as error:
            raise translate(error) or error from error

    def _problems_of_backup(self, folder: Path) -> list[str]:
        return problems_of(folder, read_manifest(folder))


def _scrub(connection: psycopg.Connection[Row]) -> bool:
    """Have the server take dead rows out of its tables; its own log and files are its own."""
    _vacuum(connection, sql.SQL("VACUUM {}"))
    return True


def _optimise(connection: psycopg.Connection[Row]) -> dict[str, Any]:
    """Have the server take dead rows out of its tables and renew what it knows of them."""
    [(before,)] = connection.execute(SIZE).fetchall()
    _vacuum(connection, sql.SQL("VACUUM (ANALYZE) {}"))
    [(after,)] = connection.execute(SIZE).fetchall()
    return {"before_bytes": before, "after_bytes": after, "log_bytes": 0, "free_bytes": 0}


def _vacuum(connection: psycopg.Connection[Row], statement: sql.SQL) -> None:
    """Do it with every table of the store: what is erased was in many of them, and of one where
    nothing is dead the server reads next to nothing."""
    [(schema,)] = connection.execute(SCHEMA).fetchall()
    names = [sql.Identifier(schema, name) for (name,) in connection.execute(TABLES).fetchall()]
    connection.execute(statement.format(sql.SQL(", ").join(names)))
