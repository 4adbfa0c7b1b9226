"""Full disks: a limit on the size of a live process's files, and a small filesystem to fill."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def files_limited(pid: int, size_bytes: int) -> Iterator[None]:
    """No file of the process can be written beyond this size, as if the disk ended there."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def small_filesystem(folder: Path, size_mb: int) -> Iterator[bool]:
    """A filesystem of its own at this folder; false where none may be mounted."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size_mb}m", "none", str(folder)]
    try:
        done = subprocess.run(["mount", *options], capture_output=True, timeout=10)
        mounted = done.returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True, timeout=10)


def fill(folder: Path) -> Path:
    """Take all the space that is left; returns the file that holds it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return filler
