"""The tables of a store in PostgreSQL, in its schema, with the extension that they need."""

from __future__ import annotations

from pathlib import Path

import psycopg
import structlog

from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession

log = structlog.get_logger()

MIGRATION_LOCK = 7331_0001
EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
SCHEMA = "SELECT current_setting('search_path'), current_schema()"
# A database has an extension once, so it goes where all of its schemas find it.
SHARED_SCHEMA = """
SELECT CASE WHEN 'public' = ANY (current_schemas(FALSE)) THEN ' SCHEMA public' ELSE '' END
"""
EXTENSION_MIN = (0, 8)
NO_EXTENSION = (
    "Recollect needs the extension pgvector, 0.8 or later, in its database, and {why}. Have an "
    "administrator install it on the server (Debian's package is postgresql-NN-pgvector) and run "
    "`{what}` in that database; then start again."
)


def has_table(name: str) -> str:
    """SQL for whether a table is in the store's own schema: by its bare name, one would be found in
    any schema of the path, where another store may be."""
    return f"to_regclass(quote_ident(current_schema()) || '.{name}') IS NOT NULL"


def apply_migrations(session: PostgresWriterSession, folder: Path) -> int:
    """Bring the schema up to date, by one orchestrator at a time; returns its number."""
    before, after = migrate_alone(session, folder)
    if before != after:
        log.info("The schema is up to date.", action="migrate", before=before, after=after)
    return after


def migrate_alone(
    session: PostgresWriterSession, folder: Path, *, unfinished: bool = False
) -> tuple[int, int]:
    """Bring the schema up to date while nobody else does; the numbers before and after."""
    session.begin()
    try:
        prepare_alone(session)
        numbers = migrations.migrate(session, folder, unfinished=unfinished)
        session.commit()
    finally:
        session.recover()
    return numbers


def prepare_alone(session: PostgresWriterSession) -> None:
    """Be the one that makes tables until the transaction ends, and have what they need."""
    session.execute("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
    _require_schema(session)
    _require_extension(session)


def _require_schema(session: PostgresWriterSession) -> None:
    """Refuse to make tables in another schema than the one that the address names first."""
    [(path, current)] = session.execute(SCHEMA)
    first = str(path).split(",")[0].strip().strip('"')
    if current is None or first not in ("$user", current):
        raise migrations.SchemaError(
            f"The schema {first!r}, which comes first in search_path, is not there. Make it with "
            f"`CREATE SCHEMA {first}` in that database; then start again."
        )


def _require_extension(session: PostgresWriterSession) -> None:
    """Have pgvector in the database, or say what an administrator is to do."""
    found = session.execute(EXTENSION)
    if not found:
        try:
            session.execute("CREATE EXTENSION vector" + session.execute(SHARED_SCHEMA)[0][0])
        except psycopg.Error as error:
            reason = f"cannot create it: {error.diag.message_primary or error}"
            raise migrations.SchemaError(
                NO_EXTENSION.format(why=reason, what="CREATE EXTENSION vector")
            ) from error
        found = session.execute(EXTENSION)
    version = str(found[0][0])
    if tuple(map(int, version.split(".")[:2])) < EXTENSION_MIN:
        raise migrations.SchemaError(
            NO_EXTENSION.format(why=f"has {version}", what="ALTER EXTENSION vector UPDATE")
        )
