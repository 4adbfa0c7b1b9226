"""The database seen from outside: whole, in one chain, and what lies in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from recollect.orchestrator.storage import journal_walk
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.postgres.session import PostgresSession, connect
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from tests.harness.storages import CHOSEN, POSTGRESQL


@contextmanager
def copied(data: Path, scratch: Path) -> Iterator[SqliteSession]:
    """A session on a copy of database and write-ahead log as a crash left them.

    The original stays untouched, so that recovering it is left to the orchestrator.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
        if (data / name).exists():
            shutil.copyfile(data / name, scratch / name)
    session = SqliteSession(scratch / DATABASE_NAME, page_cache_mb=8, readonly=False)
    try:
        yield session
    finally:
        session.connection.close()
        shutil.rmtree(scratch)


def integrity(session: SqliteSession) -> str:
    """What `PRAGMA integrity_check` says: "ok", or what is wrong."""
    return "; ".join(str(row[0]) for row in session.execute("PRAGMA integrity_check(10)"))


def problems(data: Path, scratch: Path) -> list[str]:
    """What is wrong with a database at rest: its pages, or its journal.

    A server looks after its own pages, and goes on running when an orchestrator dies.
    """
    if CHOSEN.kind == POSTGRESQL:
        with connect(CHOSEN.url_of(data)) as connection:
            broken = journal_walk.verify(PostgresSession(connection))
        return [] if broken is None else [f"journal: {broken}"]
    found = []
    try:
        with copied(data, scratch) as session:
            if (said := integrity(session)) != "ok":
                found.append(f"integrity_check: {said}")
            if (broken := journal_walk.verify(session)) is not None:
                found.append(f"journal: {broken}")
    except apsw.Error as error:
        found.append(f"integrity_check: {error}")
    return found


def rows(path: Path, sql: str, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Rows of a database file, read beside whoever uses it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(10_000)
        connection.pragma("query_only", True)
        return connection.execute(sql, params).fetchall()
    finally:
        connection.close()
