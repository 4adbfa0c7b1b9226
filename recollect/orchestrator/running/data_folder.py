"""The data folder: made on demand, and held by one process of a role at a time.

The roles are those of processes that belong to a folder: its orchestrator, and the supervisor that
keeps everything up.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

FOLDER_MODE = 0o700
ORCHESTRATOR = "orchestrator"


def lock_path(folder: Path, role: str) -> Path:
    return folder / f"{role}.lock"


def announcement_path(folder: Path, role: str) -> Path:
    return folder / f"{role}.json"


def keep_to_owner() -> None:
    """Let nobody else read what this process makes from now on: a store that every user of the
    machine could open would need no key."""
    os.umask(0o777 & ~FOLDER_MODE)


class FolderInUse(Exception):
    """Another process works on the folder."""


class DataFolder:
    """A folder that is held in a role while this object lives."""

    def __init__(self, path: Path, role: str = ORCHESTRATOR) -> None:
        self.path = path
        self._announcement = announcement_path(path, role)
        path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        self._file = lock_path(path, role).open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise FolderInUse(
                f"{path} is in use by another {_called(role)} (process {holder}). Stop that one, "
                "or give this one a folder of its own with --data."
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def announce(self, facts: dict[str, Any]) -> None:
        """Leave word of who serves this folder and where."""
        partial = self._announcement.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(facts))
        partial.rename(self._announcement)

    def release(self) -> None:
        """Let the next one in."""
        self._announcement.unlink(missing_ok=True)
        self._file.close()


def _called(role: str) -> str:
    return "`recollect up`" if role == "up" else role


def announcement(folder: Path, role: str = ORCHESTRATOR) -> dict[str, Any] | None:
    """What the process that serves a folder in a role, or died over it, left word of."""
    try:
        announced = msgspec.json.decode(announcement_path(folder, role).read_bytes())
    except (OSError, ValueError):
        return None
    needed = {"pid", "endpoint"} if role == ORCHESTRATOR else {"pid"}
    return announced if isinstance(announced, dict) and needed <= announced.keys() else None


def holder_of(folder: Path, role: str = ORCHESTRATOR) -> str | None:
    """The process that has the folder to itself just now; None if nobody has."""
    try:
        with lock_path(folder, role).open() as file:
            try:
                # Shared and let go at once: two who look do not see each other.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "unknown"
    except OSError:
        pass
    return None
