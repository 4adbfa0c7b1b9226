"""What `recollect doctor` looks at in the database, all of it on one read-only snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.output import counted, size
from recollect.orchestrator.maintenance import checks
from recollect.orchestrator.maintenance.checks import RESTORE, Problem
from recollect.orchestrator.search.lexical import Fts5Index
from recollect.orchestrator.storage import journal_walk, migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.interface import Params, Row, Session

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
        yield fail("database", f"{path} cannot be read: {error}.", RESTORE)
    except apsw.Error as error:
        yield fail("database", f"{path} cannot be checked: {error}.", "Check who may read it.")


def _check(session: Session, path: Path) -> Iterator[Finding]:
    yield _integrity(session, path)
    schema = _schema(session)
    yield schema
    if schema.state == "fail":
        return
    if schema.state == "ok":
        yield _journal(session)
    [(living,)] = session.execute(checks.COUNT_LIVING)
    yield from _shared(
        "vectors", checks.check_vectors(session), lambda: _vectors_well(session, living)
    )
    yield from _shared(
        "words",
        checks.check_words(Fts5Index.held_sql, session),
        lambda: "The full-text index agrees with the memories.",
    )
    if schema.state == "ok":
        yield from _shared(
            "links", checks.check_links(session), lambda: "What hangs on memories has its memory."
        )


def _integrity(session: Session, path: Path) -> Finding:
    found = [str(row[0]) for row in session.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})")]
    if found != ["ok"]:
        return fail("database", f"SQLite finds damage: {'; '.join(found)}.", RESTORE)
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
    if number > known:
        return fail(
            "schema",
            f"The database has schema {number}; this version knows up to {known}.",
            "Install the version that wrote it, or a newer one.",
        )
    if number < known:
        return warn(
            "schema",
            f"The database has schema {number} of {known}.",
            "The next start of the orchestrator brings it up to date; make a backup before.",
        )
    return ok("schema", f"Schema {number} is the newest.")


def _journal(session: Session) -> Finding:
    if complaint := journal_walk.verify(session):
        return fail(
            "journal",
            f"The chain of the audit is broken: {complaint}.",
            "Somebody or something changed the past. Compare with a backup.",
        )
    [(entries,)] = session.execute("SELECT count(*) FROM journal")
    text = "1 entry fits" if entries == 1 else f"{entries:,} entries fit"
    return ok("journal", f"{text} the chain.")


def _shared(name: str, problems: Iterator[Problem], well: Callable[[], str]) -> Iterator[Finding]:
    """What the orchestrator would find as well, or that all is well."""
    found = list(problems)
    for problem in found:
        tell = fail if problem.serious else warn
        yield tell(name, problem.text, problem.advice)
    if not found:
        yield ok(name, well())


def _vectors_well(session: Session, living: int) -> str:
    kinds = session.execute(checks.COUNT_KINDS)
    model = f" of {kinds[0][0]}" if kinds else ""
    return f"{counted(living, 'living memory')}, each with its vector{model}."
