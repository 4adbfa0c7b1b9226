"""The tables of a database file, brought up to date when it is opened."""

from __future__ import annotations

from pathlib import Path

import apsw
import structlog

from recollect.orchestrator.storage import migrations
from recollect.orchestrator.storage.properties import GET, REMOVE
from recollect.orchestrator.storage.sqlite.session import SqliteSession

log = structlog.get_logger()

FIND_PROPERTIES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'properties'"
LEFTOVERS = "leftovers"
"""Marks a file in which deleted rows were not overwritten from its beginning."""


def apply_migrations(session: SqliteSession, folder: Path) -> int:
    """Bring the schema up to date; returns its number."""
    session.begin()
    try:
        before, after = migrations.migrate(session, folder)
        session.commit()
    finally:
        session.recover()
    if before != after:
        log.info("The schema is up to date.", action="migrate", before=before, after=after)
    return after


def rewrite_once(session: SqliteSession) -> bool:
    """Rewrite a file in which deleted rows were not always overwritten; whether none is left.

    That is so once, after the upgrade that brought the overwriting, before anybody is served.
    """
    if not session.execute(FIND_PROPERTIES) or not session.execute(GET, (LEFTOVERS,)):
        return True
    log.info("The database is rewritten, so that nothing deleted is left.", action="rewrite")
    try:
        # It may be large: by way of a file, and not in memory.
        session.connection.pragma("temp_store", "file")
        session.execute("VACUUM")
        session.execute(REMOVE, (LEFTOVERS,))
    except apsw.Error as error:
        log.warning("The database was not rewritten.", action="rewrite", reason=str(error))
        return False
    finally:
        session.connection.pragma("temp_store", "memory")
    return True
