"""A TCP proxy that cuts the connection when a reply is on its way, as often as it is told."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import threading

# The operation's name as it stands in the envelope; a report of errors has it in its body as well.
ADD_MEMORY = b"\xa2op\xaaadd_memory"


class CuttingProxy:
    """Passes bytes between a client and a server; replies to add_memory are cut at random."""

    def __init__(self, port: int, *, cut_share: float, seed: int) -> None:
        self._port = port
        self._cut_share = cut_share
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut_count = 0
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        self._listener.settimeout(0.05)
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                client, _ = self._listener.accept()
                thread = threading.Thread(target=self._pass, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._port))
        requested = False
        with client, server, contextlib.suppress(OSError):
            while not self._stopping.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.05)
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is client:
                        requested |= ADD_MEMORY in data
                    elif requested and b"success" in data:
                        requested = False
                        if self._random.random() < self._cut_share:
                            self.cut_count += 1
                            return
                    (server if source is client else client).sendall(data)

    def close(self) -> None:
        self._stopping.set()
        for thread in [self._accepting, *self._threads]:
            thread.join(5)
        self._listener.close()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
