"""What `recollect doctor` looks at in a database file, all of it on one read-only snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.output import size
from recollect.cli.store_checks import check_rows, schema_finding
from recollect.orchestrator.search.lexical import Fts5Index
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.interface import Params, Row, Session
from recollect.orchestrator.storage.sqlite.copies import RESTORING

BUSY_TIMEOUT_MS = 10_000
PROBLEMS_MAX = 5


class ReadOnlySession:
    """A connection that cannot write, whatever is asked of it."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def execute(self, sql: str, params: Params = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(params)).fetchall()

    def executemany(self, sql: str, rows: Any) -> None:
        raise AssertionError("a check-up does not write")

    def close(self) -> None:
        self._connection.close()


def check_database(folder: Path) -> Iterator[Finding]:
    """Everything there is to say of the database in a data folder that exists."""
    path = folder / DATABASE_NAME
    if not path.exists():
        yield warn("database", f"{path} does not exist yet.", "`recollect up` makes it.")
        return
    try:
        session = ReadOnlySession(path)
        try:
            session.execute("BEGIN")
            yield from _check(session, path)
        finally:
            session.close()
    except (apsw.NotADBError, apsw.CorruptError) as error:
        yield fail("database", f"{path} cannot be read: {error}.", RESTORING)
    except apsw.Error as error:
        yield fail("database", f"{path} cannot be checked: {error}.", "Check who may read it.")


def _check(session: Session, path: Path) -> Iterator[Finding]:
    yield _integrity(session, path)
    schema = _schema(session)
    yield schema
    if schema.state == "fail":
        return
    yield from check_rows(session, Fts5Index.held_sql, RESTORING, newest=schema.state == "ok")


def _integrity(session: Session, path: Path) -> Finding:
    found = [str(row[0]) for row in session.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})")]
    if found != ["ok"]:
        return fail("database", f"SQLite finds damage: {'; '.join(found)}.", RESTORING)
    total = sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    return ok("database", f"{path.name}, {size(total)}, is whole.")


def _schema(session: Session) -> Finding:
    known = len(migrations.available(migrations.FOLDER / "sqlite"))
    try:
        [(number,)] = session.execute("SELECT max(number) FROM schema_migrations")
    except apsw.SQLError:
        number = None
    if number is None:
        return fail(
            "schema",
            "The file is a database, but not one of Recollect's.",
            "Choose another data folder.",
        )
    return schema_finding(number, known)
