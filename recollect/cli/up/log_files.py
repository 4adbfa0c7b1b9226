"""The files that take what processes write, each bounded: what is too long moves aside."""

from __future__ import annotations

import shutil
from pathlib import Path

LOG_BYTES_MAX = 64 * 1024 * 1024


def older(path: Path) -> Path:
    """Where the part before the present one lies."""
    return path.with_name(f"{path.name}.1")


def bound(path: Path, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Move what a log holds aside if that is too much, also while a process writes to it.

    The process goes on in the same file, which it opened for appending; so what was written is
    copied and the file emptied. Lines written between the two are lost.
    """
    try:
        if path.stat().st_size <= bytes_max:
            return False
        shutil.copyfile(path, older(path))
        with path.open("r+b") as file:
            file.truncate(0)
    except OSError:
        return False  # A full disk: there is a next time.
    return True
