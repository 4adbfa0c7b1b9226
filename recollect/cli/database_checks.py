"""What `recollect doctor` looks at in the database, all of it on one read-only snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.output import counted, size
from recollect.orchestrator.storage import journal_walk, migrations
from recollect.orchestrator.storage.interface import Params, Row, Session
from recollect.orchestrator.storage.sqlite import DATABASE_NAME

BUSY_TIMEOUT_MS = 10_000
PROBLEMS_MAX = 5

RESTORE = "Stop the orchestrator and restore a backup: recollect restore BACKUP --data NEW_FOLDER"
RESTART = "Restart the orchestrator: it embeds what is missing when it starts."

COUNT_LIVING = "SELECT count(*) FROM memories WHERE deleted_us IS NULL"
# Of the living memories: those without a vector that do not wait for one either, and those that do.
COUNT_VECTORS = """
SELECT coalesce(sum(v.num IS NULL AND u.num IS NULL), 0), coalesce(sum(u.num IS NOT NULL), 0)
FROM memories m LEFT JOIN vectors v ON v.num = m.num LEFT JOIN unembedded u ON u.num = m.num
WHERE m.deleted_us IS NULL
"""
COUNT_KINDS = "SELECT model, length(vector), count(*) FROM vectors GROUP BY 1, 2 ORDER BY 3 DESC"
COUNT_ORPHANS = """
SELECT count(*) FROM vectors
WHERE num NOT IN (SELECT num FROM memories WHERE deleted_us IS NULL)
"""
# The words of a memory are indexed while it is neither deleted nor archived.
COUNT_UNINDEXED = """
SELECT count(*) FROM memories
WHERE deleted_us IS NULL AND archived_us IS NULL
  AND num NOT IN (SELECT rowid FROM memories_fts)
"""
COUNT_INDEXED_IN_VAIN = """
SELECT count(*) FROM memories_fts WHERE rowid NOT IN
    (SELECT num FROM memories WHERE deleted_us IS NULL AND archived_us IS NULL)
"""


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
    [(living,)] = session.execute(COUNT_LIVING)
    yield from _vectors(session, living)
    yield _words(session, living)


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


def _vectors(session: Session, living: int) -> Iterator[Finding]:
    [(missing, waiting)] = session.execute(COUNT_VECTORS)
    kinds = session.execute(COUNT_KINDS)
    [(orphans,)] = session.execute(COUNT_ORPHANS)
    misfits = sum(count for _, _, count in kinds[1:])
    if missing:
        yield fail("vectors", f"{counted(missing, 'memory')} without a vector.", RESTART)
    if misfits:
        yield fail(
            "vectors",
            f"{counted(misfits, 'vector')} of another model or length than the others.",
            RESTART,
        )
    if orphans:
        yield warn(
            "vectors",
            f"{counted(orphans, 'vector')} without a living memory.",
            "They do no harm; please report how this came about.",
        )
    if waiting:
        yield warn(
            "vectors",
            f"{counted(waiting, 'memory')} waiting for a vector; words find them meanwhile.",
            "The orchestrator embeds them as soon as its model can; see `recollect stats`.",
        )
    if not (missing or misfits or orphans or waiting):
        model = f" of {kinds[0][0]}" if kinds else ""
        yield ok("vectors", f"{counted(living, 'living memory')}, each with its vector{model}.")


def _words(session: Session, living: int) -> Finding:
    [(unindexed,)] = session.execute(COUNT_UNINDEXED)
    [(in_vain,)] = session.execute(COUNT_INDEXED_IN_VAIN)
    if unindexed or in_vain:
        return fail(
            "words",
            f"The full-text index lacks {counted(unindexed, 'memory')} and holds "
            f"{counted(in_vain, 'entry')} too many.",
            "Searching by words misses something. " + RESTORE,
        )
    return ok("words", "The full-text index agrees with the memories.")
