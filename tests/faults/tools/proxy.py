"""A TCP proxy that breaks connections at chosen places of the ZeroMQ stream.

It reads ZMTP just far enough to tell messages from commands, so that it can let a request through
and lose its reply, cut either in the middle, or break the line right after the request.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import urlsplit

from tests.faults.polling import wait_for

Cut = Literal["none", "half_request", "after_request", "lose_reply", "half_reply"]
CUTS: tuple[Cut, ...] = ("half_request", "after_request", "lose_reply", "half_reply")

GREETING_BYTES = 64
LONG, COMMAND = 0x02, 0x04
CHUNK_BYTES = 65_536
POLL_S = 0.05


class FrameReader:
    """Splits a ZMTP stream into its greeting and frames; tells which are messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeting_left = GREETING_BYTES

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, bool]]:
        """Pieces of the stream, each with whether it is a message."""
        if self._greeting_left:
            # Both sides send their greetings bit by bit, each waiting for the other's.
            greeting, chunk = chunk[: self._greeting_left], chunk[self._greeting_left :]
            self._greeting_left -= len(greeting)
            yield greeting, False
        self._buffer += chunk
        while (size := self._size()) is not None and len(self._buffer) >= size:
            piece = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield piece, not piece[0] & COMMAND

    def _size(self) -> int | None:
        """The length of the next frame, once enough of it is there to know."""
        if len(self._buffer) < 2:
            return None
        if not self._buffer[0] & LONG:
            return 2 + self._buffer[1]
        if len(self._buffer) < 9:
            return None
        return 9 + int.from_bytes(self._buffer[1:9], "big")


class _Link:
    """One connection of a client, and ours to the orchestrator for it."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near, self.far = near, far
        self.requests, self.replies = FrameReader(), FrameReader()
        self.cut: Cut = "none"
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.near.close()
        self.far.close()


class CuttingProxy:
    """Stands before an orchestrator; `choose` says for each request how its line is cut."""

    def __init__(self, endpoint: str, choose: Callable[[], Cut]) -> None:
        target = urlsplit(endpoint)
        self._target = (str(target.hostname), int(target.port or 0))
        self._choose = choose
        self.cuts: dict[Cut, int] = dict.fromkeys(CUTS, 0)
        """How often each cut was made. Written by the proxy's thread alone."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def wait_for_cuts(self, cut: Cut, count: int, within_s: float = 10.0) -> None:
        """Return when a cut was made so often in all."""
        wait_for(lambda: self.cuts[cut] >= count, within_s=within_s, what=f"{count} times {cut}")

    def __enter__(self) -> CuttingProxy:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.set()
        self._thread.join(10.0)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            for key, _ in self._selector.select(POLL_S):
                if key.data is None:
                    self._accept()
                elif not key.data.closed:
                    self._forward(key.data, key.fileobj is key.data.near)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(self._target, timeout=5.0)
        except OSError:
            near.close()
            return
        link = _Link(near, far)
        for side in (near, far):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(side, selectors.EVENT_READ, link)

    def _forward(self, link: _Link, from_client: bool) -> None:
        source = link.near if from_client else link.far
        try:
            chunk = source.recv(CHUNK_BYTES)
            if not chunk:
                self._drop(link)
            elif from_client:
                self._requests(link, chunk)
            else:
                self._replies(link, chunk)
        except OSError:
            self._drop(link)

    def _requests(self, link: _Link, chunk: bytes) -> None:
        for piece, is_message in link.requests.feed(chunk):
            if is_message:
                link.cut = self._choose()
            if is_message and link.cut == "half_request":
                link.far.sendall(piece[: len(piece) // 2])
                self._cut(link)
                return
            link.far.sendall(piece)
            if is_message and link.cut == "after_request":
                self._cut(link)
                return

    def _replies(self, link: _Link, chunk: bytes) -> None:
        for piece, is_message in link.replies.feed(chunk):
            if is_message and link.cut in ("lose_reply", "half_reply"):
                if link.cut == "half_reply":
                    link.near.sendall(piece[: len(piece) // 2])
                self._cut(link)
                return
            link.near.sendall(piece)

    def _cut(self, link: _Link) -> None:
        self.cuts[link.cut] += 1
        self._drop(link)

    def _drop(self, link: _Link) -> None:
        for side in (link.near, link.far):
            self._selector.unregister(side)
        link.close()
