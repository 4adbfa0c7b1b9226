"""What `recollect doctor` looks at in PostgreSQL: whether it answers, has what Recollect needs, and
whether the rows agree, on one snapshot that cannot write. The address may hold a password and is
not shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from recollect.cli.findings import Finding, fail, ok, warn
from recollect.cli.output import size
from recollect.cli.store_checks import check_rows, schema_finding
from recollect.orchestrator.search.lexical.tsvector import TsvectorIndex
from recollect.orchestrator.search.vectors.pgvector import (
    INDEX_PREFIX,
    INDEXED_DIMENSIONS_MAX,
    TABLES,
)
from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.postgres.copies import RESTORING
from recollect.orchestrator.storage.postgres.schema import EXTENSION, EXTENSION_MIN, has_table
from recollect.orchestrator.storage.postgres.session import PostgresSession, connect
from recollect.orchestrator.storage.postgres.storage import SIZE
from recollect.orchestrator.vectors.pgvector_indexes import COUNT_SOME, INDEXED_MIN

SERVER_MIN = 14
STATEMENT_S_MAX = 60
"""A question that takes longer is not answered: the server has others to serve."""
BEGIN = (
    f"SET statement_timeout = '{STATEMENT_S_MAX}s'",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
)
HAS_MIGRATIONS = f"SELECT {has_table('schema_migrations')}"
APPLIED = "SELECT number, name FROM schema_migrations ORDER BY number"
# An index whose building was broken off takes up what is written, and answers nothing.
INDEXES = """
SELECT c.relname, a.amname, i.indisvalid AND i.indisready
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relnamespace = current_schema()::regnamespace ORDER BY c.relname
"""
MODEL_IN_USE = f"""
SELECT model, vector_dims(vector) FROM {TABLES[0]} GROUP BY 1, 2 ORDER BY count(*) DESC LIMIT 1
"""


def check_postgres(url: str) -> Iterator[Finding]:
    """Everything there is to say of the database of `storage.url`."""
    try:
        connection = connect(url)
    except psycopg.Error as error:
        yield fail(
            "database",
            f"PostgreSQL cannot be reached: {_reason(error)}.",
            "Start it, or put storage.url right: host, port, database, role and password.",
        )
        return
    try:
        session = PostgresSession(connection)
        for statement in BEGIN:
            session.execute(statement)
        yield from _check(session, connection.info.server_version)
    except psycopg.errors.QueryCanceled:
        yield warn(
            "database",
            f"A check took longer than {STATEMENT_S_MAX} seconds and was given up, with the rest.",
            "Look again at a quiet time, or ask the orchestrator: check_integrity.",
        )
    except psycopg.errors.InsufficientPrivilege as error:
        yield fail(
            "database",
            f"The role may not read all of it: {_reason(error)}.",
            "Use the role that owns the tables.",
        )
    except psycopg.Error as error:
        yield fail(
            "database", f"It cannot be checked: {_reason(error)}.", "See the log of the server."
        )
    finally:
        connection.close()


def schema_of(url: str) -> tuple[int, int]:
    """The number of the schema that is there, 0 for none, and of the newest that is known."""
    newest = len(migrations.available(migrations.FOLDER / "postgres"))
    with contextlib.closing(connect(url)) as connection:
        session = PostgresSession(connection)
        if not session.execute(HAS_MIGRATIONS)[0][0]:
            return 0, newest
        return max((int(number) for number, _ in session.execute(APPLIED)), default=0), newest


def _check(session: Session, number: int) -> Iterator[Finding]:
    server = _server(session, number)
    extension = _extension(session)
    yield server
    yield extension
    schema = _schema(session)
    yield schema
    if schema.state == "fail" or not session.execute(HAS_MIGRATIONS)[0][0]:
        return
    yield from _indexes(session)
    # Before that, vectors and words lie otherwise.
    if schema.state == "ok" and extension.state == "ok":
        yield from check_rows(session, TsvectorIndex.held_sql, RESTORING, newest=True)


def _server(session: Session, number: int) -> Finding:
    version = f"{number // 10_000}.{number % 10_000}"
    if number // 10_000 < SERVER_MIN:
        return fail(
            "database",
            f"PostgreSQL {version} is older than {SERVER_MIN}.",
            f"Move the database to PostgreSQL {SERVER_MIN} or later.",
        )
    [(total,)] = session.execute(SIZE)
    return ok("database", f"PostgreSQL {version} answers; the store in it has {size(total)}.")


def _extension(session: Session) -> Finding:
    found = session.execute(EXTENSION)
    least = ".".join(map(str, EXTENSION_MIN))
    if not found:
        return warn(
            "pgvector",
            "The database does not have the extension pgvector yet.",
            "The orchestrator creates it if its role may; else have an administrator run CREATE "
            "EXTENSION vector in that database.",
        )
    version = str(found[0][0])
    if tuple(map(int, version.split(".")[:2])) < EXTENSION_MIN:
        return fail(
            "pgvector",
            f"pgvector {version} is older than {least}.",
            "Have an administrator install a newer one and run ALTER EXTENSION vector UPDATE.",
        )
    return ok("pgvector", f"pgvector {version}.")


def _schema(session: Session) -> Finding:
    known = len(migrations.available(migrations.FOLDER / "postgres"))
    if not session.execute(HAS_MIGRATIONS)[0][0]:
        return warn(
            "schema",
            "The database has no tables of Recollect yet.",
            "`recollect up` makes them. If there should be some, is it this database, and this "
            "search_path?",
        )
    applied = {int(number): str(name) for number, name in session.execute(APPLIED)}
    source = applied.pop(migrations.UNFINISHED, None)
    if source is not None:
        return fail(
            "schema",
            f"The database is an unfinished copy of {source}; no orchestrator opens it.",
            "Give the same `recollect migrate-storage` again to complete it.",
        )
    return schema_finding(max(applied, default=0), known)


def _indexes(session: Session) -> Iterator[Finding]:
    """Whether each is of use; and whether the vectors have theirs, once they are many."""
    found = session.execute(INDEXES)
    invalid = [name for name, _, valid in found if not valid]
    for name in invalid:
        yield fail(
            "indexes",
            f"The index {name} is not valid: its building was broken off.",
            f"REINDEX INDEX {name}; or, if it begins with {INDEX_PREFIX}, drop it and restart an "
            "orchestrator, which makes it anew.",
        )
    if not any(method == "hnsw" for _, method, _ in found) and _wants_graph(session):
        yield warn(
            "indexes",
            f"There are {INDEXED_MIN:,} vectors or more, and they have no index.",
            "An orchestrator makes it within some minutes; until then a search compares them all.",
        )
    elif not invalid:
        yield ok("indexes", f"{len(found)} indexes, all valid.")


def _wants_graph(session: Session) -> bool:
    used = session.execute(MODEL_IN_USE)
    if not used or used[0][1] > INDEXED_DIMENSIONS_MAX:
        return False
    [(count,)] = session.execute(COUNT_SOME.format(table=TABLES[0]), (used[0][0], INDEXED_MIN))
    return bool(count >= INDEXED_MIN)


def _reason(error: psycopg.Error) -> str:
    """What the server says, in one line; neither it nor libpq repeats a password."""
    text = error.diag.message_primary or str(error)
    return " ".join(text.split()).rstrip(".")
