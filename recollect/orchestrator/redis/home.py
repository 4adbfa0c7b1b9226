"""Where the embedded redis-server has its socket: a folder that nobody else can enter."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from recollect.orchestrator.running.data_folder import FOLDER_MODE

FOLDER_NAME = "redis"
SOCKET_NAME = "redis.sock"
SOCKET_PATH_BYTES_MAX = 100
"""Linux takes 107 bytes, macOS 103."""
LOG_BYTES_MAX = 1_000_000


class Home(NamedTuple):
    """The files of one embedded server."""

    folder: Path
    log: Path

    @property
    def socket(self) -> Path:
        return self.folder / SOCKET_NAME

    @property
    def pid_file(self) -> Path:
        return self.folder / "redis.pid"

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket))}"

    def make(self) -> None:
        """Make what is missing; raises if the folder is not for its owner alone."""
        self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{self.folder} is not a folder of this user.")
        if found.st_mode & 0o077:
            self.folder.chmod(FOLDER_MODE)
        self.log.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            self.log.write_bytes(b"")

    def remove(self) -> None:
        """Remove what a server left that has ended."""
        for path in (self.socket, self.pid_file):
            path.unlink(missing_ok=True)


def home_in(data: Path) -> Home:
    """The home of the server that belongs to a data folder: always the same, so that what an
    earlier one left is found again."""
    data = data.resolve()
    log = data / "logs" / "redis.log"
    folder = data / FOLDER_NAME
    if len(os.fsencode(folder / SOCKET_NAME)) > SOCKET_PATH_BYTES_MAX:
        name = hashlib.blake2b(os.fsencode(data), digest_size=8).hexdigest()
        folder = Path(tempfile.gettempdir()) / f"recollect-{os.getuid()}-{name}"
    return Home(folder, log)
