"""Copies of a store: a folder with one plain file and a manifest, which is written last."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import apsw
import msgspec

DATABASE_NAME = "recollect.db"
ROWS_NAME = "recollect.rows"
"""The file of a copy of what lies on a server."""
MANIFEST_NAME = "manifest.json"
PARTIAL_MANIFEST_NAME = f"{MANIFEST_NAME}.partial"
PROBLEMS_MAX = 5
NUMBERS = "SELECT seq, (SELECT max(number) FROM schema_migrations) FROM ledger WHERE id = 1"


class Manifest(msgspec.Struct, frozen=True):
    """What a backup says of itself."""

    seq: int
    schema: int
    bytes: int
    sha256: str
    storage: str = "sqlite"


def back_up(database: Path, folder: Path) -> dict[str, Any]:
    """Copy a database, also while it is written, into a new folder with a manifest."""
    folder.mkdir(parents=True, exist_ok=False)
    try:
        return _copy_into(folder, database)
    except BaseException:
        remove_copy(folder)
        raise


def remove_copy(folder: Path) -> None:
    """Remove a folder that was just made here."""
    shutil.rmtree(folder, ignore_errors=True)


def _copy_into(folder: Path, database: Path) -> dict[str, Any]:
    copy_path = folder / DATABASE_NAME
    source = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    target = apsw.Connection(str(copy_path))
    try:
        with target.backup("main", source, "main") as copying:
            copying.step()
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


def write_manifest(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """Finish a copy whose file is on disk: a folder without a manifest is one that is not."""
    told = {"path": str(folder), **msgspec.structs.asdict(manifest)}
    partial = folder / PARTIAL_MANIFEST_NAME
    with partial.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(told)))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(folder / MANIFEST_NAME)
    for directory in (folder, folder.parent):
        _sync_directory(directory)
    return told


def _sync_directory(directory: Path) -> None:
    """Make the names in a folder durable, not only the files behind them."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a copy. Raises OSError and msgspec's errors."""
    return msgspec.json.decode((folder / MANIFEST_NAME).read_bytes(), type=Manifest)


def problems_of(database: Path, *, quick: bool = False) -> list[str]:
    """What SQLite finds wrong with a database that nobody writes to; nothing if it is whole."""
    connection = apsw.Connection(
        f"{database.absolute().as_uri()}?immutable=1",
        flags=(apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI),
    )
    check = "quick_check" if quick else "integrity_check"
    try:
        found = connection.execute(f"PRAGMA {check}({PROBLEMS_MAX})").fetchall()
    except apsw.Error as error:
        return [str(error)]
    finally:
        connection.close()
    return [str(text) for (text,) in found if text != "ok"]
