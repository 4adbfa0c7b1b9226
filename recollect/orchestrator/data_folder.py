"""The data folder: made on demand, and held by one orchestrator at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

FOLDER_MODE = 0o700
LOCK_NAME = "orchestrator.lock"
ANNOUNCEMENT_NAME = "orchestrator.json"


def keep_to_owner() -> None:
    """Let nobody else read what this process makes from now on: a store that every user of the
    machine could open would need no key."""
    os.umask(0o777 & ~FOLDER_MODE)


class FolderInUse(Exception):
    """Another process works on the folder."""


class DataFolder:
    """A folder that is locked while this object lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._file = (path / LOCK_NAME).open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise FolderInUse(
                f"{path} is in use by another orchestrator (process {holder}). Stop that one, or "
                "give this one a folder of its own with --data."
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def announce(self, facts: dict[str, Any]) -> None:
        """Leave word of who serves this folder and where."""
        partial = self.path / f"{ANNOUNCEMENT_NAME}.partial"
        partial.write_bytes(msgspec.json.encode(facts))
        partial.rename(self.path / ANNOUNCEMENT_NAME)

    def release(self) -> None:
        """Let the next one in."""
        (self.path / ANNOUNCEMENT_NAME).unlink(missing_ok=True)
        self._file.close()


def announcement(folder: Path) -> dict[str, Any] | None:
    """What the orchestrator that serves a folder, or died over it, left word of."""
    try:
        announced = msgspec.json.decode((folder / ANNOUNCEMENT_NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return (
        announced
        if isinstance(announced, dict) and {"pid", "endpoint"} <= announced.keys()
        else None
    )


def holder_of(folder: Path) -> str | None:
    """The process that has the folder to itself just now; None if nobody has."""
    try:
        with (folder / LOCK_NAME).open() as file:
            try:
                # Shared and let go at once: two who look do not see each other.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "unknown"
    except OSError:
        pass
    return None
