"""Copies of a database file, which may be written meanwhile."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from recollect.orchestrator.storage.copies import (
    DATABASE_NAME,
    Manifest,
    go_on_unless,
    never,
    remove_copy,
    write_manifest,
)
from recollect.orchestrator.storage.sqlite.damage import LOOK_STEPS, found_in

RESTORING = "Stop the orchestrator and restore a backup: recollect restore BACKUP --data NEW_FOLDER"
STEP_PAGES = 5_000
NUMBERS = "SELECT seq, (SELECT max(number) FROM schema_migrations) FROM ledger WHERE id = 1"


def back_up(database: Path, folder: Path, stopped: Callable[[], bool] = never) -> dict[str, Any]:
    """Copy a database, also while it is written, into a new folder with a manifest, unless
    somebody says meanwhile that it is to be stopped."""
    folder.mkdir(parents=True, exist_ok=False)
    try:
        return _copy_into(folder, database, stopped)
    except BaseException:
        remove_copy(folder)
        raise


def _copy_into(folder: Path, database: Path, stopped: Callable[[], bool]) -> dict[str, Any]:
    copy_path = folder / DATABASE_NAME
    source = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    target = apsw.Connection(str(copy_path))
    try:
        # Of one moment, however long it takes: else each write meanwhile would begin it anew.
        source.execute("BEGIN")
        source.execute(NUMBERS).fetchall()
        with target.backup("main", source, "main") as copying:
            while not copying.step(STEP_PAGES):
                go_on_unless(stopped)
        # A backup is one plain file: no write-ahead log beside it.
        target.pragma("journal_mode", "delete")
        numbers: list[Any] = target.execute(NUMBERS).fetchall()
        [(seq, schema)] = numbers
    finally:
        target.close()
        source.close()
    with copy_path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    return write_manifest(folder, Manifest(seq, schema, copy_path.stat().st_size, digest))


def problems_of(
    database: Path, *, quick: bool = False, stopped: Callable[[], bool] = never
) -> list[str]:
    """What SQLite finds wrong with a database that nobody writes to; nothing if it is whole.
    Raises apsw.InterruptError if it is to be stopped meanwhile."""
    connection = apsw.Connection(
        f"{database.absolute().as_uri()}?immutable=1",
        flags=(apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI),
    )
    connection.set_progress_handler(stopped, LOOK_STEPS)
    try:
        return found_in(connection, quick=quick)
    except apsw.InterruptError:
        raise
    except apsw.Error as error:
        return [str(error)]
    finally:
        connection.close()
