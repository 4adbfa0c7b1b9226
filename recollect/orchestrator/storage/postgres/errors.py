"""What goes wrong at the server, as whoever asked is told it."""

from __future__ import annotations

import psycopg
import psycopg_pool

from recollect.orchestrator.storage.damage import damaged
from recollect.protocol.errors import (
    AlreadyExists,
    InvalidArgument,
    RecollectError,
    StorageFailed,
    StorageFull,
)

# How the server's errors begin by which a connection ends; one that just ends has none.
CUT_OFF = "08", "57P"
# And those by which it tells that its files are not what it wrote.
DAMAGE = "XX001", "XX002", "58030", "58P01"


def translate(error: BaseException) -> RecollectError | None:
    """An error of psycopg as one of ours; None if it is something else."""
    if isinstance(error, psycopg_pool.PoolTimeout):
        return StorageFailed("PostgreSQL does not answer; nothing was written.")
    if not isinstance(error, psycopg.Error):
        return None
    # The rest of what the server says may quote the row, and so what is to be remembered.
    reason = error.diag.message_primary or str(error)
    if isinstance(error, psycopg.errors.UniqueViolation):
        return AlreadyExists(f"The storage refused a duplicate; nothing was written ({reason}).")
    if isinstance(error, psycopg.DataError | psycopg.errors.UndefinedFunction):
        return InvalidArgument(f"PostgreSQL cannot take a value: {reason}.")
    if isinstance(error, psycopg.errors.DiskFull):
        return StorageFull(
            "PostgreSQL's disk is full; nothing was written. Free some space: writing goes on by "
            "itself.",
            reason=reason,
        )
    if is_cut_off(error):
        return StorageFailed(
            f"The connection to PostgreSQL was cut: {reason}. What was to be written may be stored "
            "or not: send it again with the same key, and it is stored once.",
            reason=reason,
        )
    if (error.sqlstate or "").startswith(DAMAGE):
        return damaged(
            f"PostgreSQL cannot read what lies in it: {reason}. Nothing was written; its own log "
            "says more.",
            reason,
        )
    return StorageFailed(f"PostgreSQL refused: {reason}. Nothing was written.", reason=reason)


def is_cut_off(error: psycopg.Error) -> bool:
    """Whether the connection ended with it; not so where there was none to be had."""
    return (
        isinstance(error, psycopg.OperationalError)
        and not isinstance(error, psycopg_pool.PoolTimeout)
        and (error.sqlstate or "08").startswith(CUT_OFF)
    )
