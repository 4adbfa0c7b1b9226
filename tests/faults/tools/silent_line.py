"""A TCP line to a PostgreSQL server that can fall silent: what is sent goes nowhere, and nobody is
told. So it is with a machine that lost its power, or a firewall that forgot a connection."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress

CHUNK_BYTES = 65_536
POLL_S = 0.02


class SilentLine:
    """Stands before the socket in a file, from `with` to its end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._others: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._closing = threading.Event()
        self._silent = threading.Event()
        self._thread = threading.Thread(target=self._run, name="silent-line", daemon=True)

    def fall_silent(self) -> None:
        """Pass nothing on from here on."""
        self._silent.set()

    def cut_and_fall_silent(self) -> None:
        """End the lines there are; who connects from here on is not answered."""
        self._silent.set()
        for each in list(self._others):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> SilentLine:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.set()
        self._thread.join(10.0)
        for each in (*self._others, self._listener):
            each.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            if self._silent.is_set():
                self._closing.wait(POLL_S)
                continue
            for key, _ in self._selector.select(POLL_S):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and not self._silent.is_set():
                    self._forward(key.fileobj)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._path)
        for one, other in ((near, far), (far, near)):
            self._others[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        other = self._others.get(source)
        if other is None:
            return
        chunk = b""
        with suppress(OSError):
            chunk = source.recv(CHUNK_BYTES)
            other.sendall(chunk)
        if not chunk:
            for each in (source, other):
                self._selector.unregister(each)
                del self._others[each]
                each.close()
