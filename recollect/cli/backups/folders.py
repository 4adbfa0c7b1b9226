"""A backup, made of a folder that nobody serves, and brought back into a new one.

A backup is a folder with a copy of the database and a manifest that was written last, so a folder
without one was not finished. What is restored is checked as the copy that it will be: its hash
against the manifest, then SQLite's own check, and only then does it get the database's name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from recollect.cli.failures import USAGE, Failure
from recollect.orchestrator.running.data_folder import DataFolder, keep_to_owner
from recollect.orchestrator.storage import copies, migrations
from recollect.orchestrator.storage.copies import DATABASE_NAME, MANIFEST_NAME, Manifest
from recollect.orchestrator.storage.properties import REMOVE, STORE_ID
from recollect.orchestrator.storage.sqlite.copies import back_up, problems_of

CHUNK_BYTES = 4 * 1024 * 1024
SQLITE = "sqlite"
FOLDERS = {SQLITE: SQLITE, "postgresql": "postgres"}
"""Where the migrations of a kind of storage are."""


class NoDatabase(Failure):
    """A folder that holds no database."""


def back_up_unserved(folder: Path, target: Path) -> dict[str, Any]:
    """Copy the database of a folder while nobody can serve it. Raises FolderInUse."""
    database = folder / DATABASE_NAME
    if not database.exists():
        raise NoDatabase(
            "not_found", f"There is no database in {folder}.", "Name a data folder with --data."
        )
    if target.exists():
        raise Failure("already_exists", f"{target} exists already.", "Name a new folder.")
    keep_to_owner()
    held = DataFolder(folder)
    try:
        return back_up(database, target)
    finally:
        held.release()


def restore_into(
    backup: Path,
    folder: Path,
    *,
    begun: Callable[[int], object],
    copied: Callable[[int], object],
) -> dict[str, Any]:
    """Put the database of a backup into a data folder that has none; returns the manifest.

    `begun` is told how many bytes there are, `copied` how many more were copied.
    """
    manifest = read_manifest(backup)
    if manifest.storage != SQLITE:
        raise Failure(
            "usage",
            f"{backup} is a backup of PostgreSQL, which no data folder can hold.",
            "Name a database that holds no store: --storage postgresql://…",
            exit_code=USAGE,
        )
    keep_to_owner()
    held = DataFolder(folder)
    try:
        _refuse_overwriting(folder)
        begun(manifest.bytes)
        partial = folder / f"{DATABASE_NAME}.restoring"
        try:
            digest = _copy(backup / DATABASE_NAME, partial, copied)
            if digest != manifest.sha256:
                raise Failure(
                    "backup_damaged",
                    f"The copy in {backup} is not what its manifest says: it was changed or "
                    "damaged after it was made.",
                    "Use another backup.",
                )
            _check(partial)
            _forget_name(partial)
            partial.rename(folder / DATABASE_NAME)
        finally:
            partial.unlink(missing_ok=True)
        _sync(folder)
    finally:
        held.release()
    return msgspec.structs.asdict(manifest)


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a finished backup that this program can read."""
    if not backup.is_dir():
        raise Failure("not_found", f"There is no backup at {backup}.", "Name the backup's folder.")
    try:
        manifest = copies.read_manifest(backup)
    except FileNotFoundError:
        raise Failure(
            "backup_unfinished",
            f"{backup} has no {MANIFEST_NAME}: it is not a backup, or it was not finished.",
            "Use another backup.",
        ) from None
    except msgspec.MsgspecError as error:
        raise Failure(
            "backup_damaged",
            f"The {MANIFEST_NAME} of {backup} cannot be read: {error}.",
            "Use another backup.",
        ) from error
    known = len(migrations.available(migrations.FOLDER / FOLDERS.get(manifest.storage, SQLITE)))
    if manifest.schema > known:
        raise Failure(
            "schema",
            f"The backup has schema {manifest.schema}; this version of Recollect knows up to "
            f"{known}.",
            "Install the version that made it, or a newer one.",
        )
    return manifest


def _refuse_overwriting(folder: Path) -> None:
    # A write-ahead log without its database would be applied to the restored one.
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-journal"):
        if (folder / name).exists():
            raise Failure(
                "already_exists",
                f"{folder} holds a database already ({name}); it was left as it is.",
                "Restore into a new folder, or move that file away first.",
            )


def _copy(source: Path, target: Path, copied: Callable[[int], object]) -> str:
    """Copy to disk; the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            writing.write(chunk)
            copied(len(chunk))
        writing.flush()
        os.fsync(writing.fileno())
    return digest.hexdigest()


def _check(database: Path) -> None:
    if found := problems_of(database):
        raise Failure(
            "backup_damaged",
            f"SQLite finds the copy damaged: {'; '.join(found)}.",
            "Use another backup.",
        )


def _forget_name(database: Path) -> None:
    """Let the store have a new name at its next start: it may be served beside its original, and
    what they share with others by their name is not one and the same."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.pragma("synchronous", "full")
        if connection.table_exists("main", "properties"):
            connection.execute(REMOVE, (STORE_ID,))
    finally:
        connection.close()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
