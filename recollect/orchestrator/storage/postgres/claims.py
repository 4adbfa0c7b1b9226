"""Who has a store in PostgreSQL open: any number of orchestrators, or one who copies it.

A claim is an advisory lock of the connection that writes. It ends with the connection, so a process
that dies leaves none behind. Stores in several schemas of one database are claimed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from recollect.protocol.errors import StorageFailed

CLAIM = 7331_0002
SHARE = "SELECT pg_try_advisory_lock_shared(%s, hashtext(current_schema()))"
ALONE = "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))"

Claim = Callable[[psycopg.Connection[Any]], None]


def claim_shared(connection: psycopg.Connection[Any]) -> None:
    """Have the database open beside other orchestrators."""
    if not _taken(connection, SHARE):
        raise StorageFailed(
            "`recollect migrate-storage` has this database to itself just now. Wait until it has "
            "ended, then start again."
        )


def claim_alone(connection: psycopg.Connection[Any]) -> None:
    """Have the database to oneself."""
    if not _taken(connection, ALONE):
        raise StorageFailed(
            "An orchestrator, or another `recollect migrate-storage`, has this database open. Stop "
            "all that use it, then start again."
        )


def _taken(connection: psycopg.Connection[Any], sql: str) -> bool:
    [(taken,)] = connection.execute(sql, (CLAIM,)).fetchall()
    return bool(taken)
