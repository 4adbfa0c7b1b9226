"""Backups that are kept beside the data, the newest ones, each in a folder named after its moment.

Only what is certainly such a backup is ever removed: a folder with a name that is made here, with a
manifest that can be read, and with nothing in it that is not part of a backup. A folder of such a
name without a manifest is what a kill left of one; it is removed likewise.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from recollect.orchestrator.storage.copies import (
    DATABASE_NAME,
    MANIFEST_NAME,
    PARTIAL_MANIFEST_NAME,
    ROWS_NAME,
    read_manifest,
)

log = structlog.get_logger()

FOLDER_NAME = "backups"
NAME_FORMAT = "%Y%m%dT%H%M%S.%fZ"
NAMES = re.compile(r"\d{8}T\d{6}\.\d{6}Z")
PARTS = frozenset(
    {
        DATABASE_NAME,
        f"{DATABASE_NAME}-journal",
        f"{DATABASE_NAME}-wal",
        f"{DATABASE_NAME}-shm",
        ROWS_NAME,
        MANIFEST_NAME,
        PARTIAL_MANIFEST_NAME,
    }
)


def name_of(moment_us: int) -> str:
    """The name of a backup that is made at a moment; names sort by it."""
    seconds, fraction_us = divmod(moment_us, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=fraction_us)
    return moment.strftime(NAME_FORMAT)


def remove_oldest(folder: Path, keep: int) -> int:
    """Remove all backups but the newest ones, and what is left of unfinished ones; how many whole
    ones that were. Not for while one is being made."""
    own = sorted(path for path in folder.iterdir() if NAMES.fullmatch(path.name) and _is_own(path))
    for path in own:
        if not (path / MANIFEST_NAME).exists():
            _remove(path)
    finished = [path for path in own if _is_finished(path)]
    return sum(_remove(path) for path in finished[:-keep])


def _is_own(path: Path) -> bool:
    """Whether there is nothing but parts of a backup in it."""
    if path.is_symlink() or not path.is_dir():
        return False
    return all(
        part.name in PARTS and part.is_file() and not part.is_symlink() for part in path.iterdir()
    )


def _is_finished(path: Path) -> bool:
    """Whether it has all that a backup has, and its manifest is one."""
    try:
        read_manifest(path)
    except (OSError, msgspec.MsgspecError):
        return False
    return (path / DATABASE_NAME).exists() or (path / ROWS_NAME).exists()


def _remove(path: Path) -> bool:
    """Remove one backup, the manifest first: what is left after a kill is none any more."""
    try:
        (path / MANIFEST_NAME).unlink(missing_ok=True)
        for part in path.iterdir():
            part.unlink()
        path.rmdir()
    except OSError as error:
        log.warning(
            "An old backup was not removed.",
            action="keep_backup",
            path=str(path),
            reason=str(error),
        )
        return False
    return True
