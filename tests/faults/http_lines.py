"""Plain HTTP over a socket: whatever bytes a test likes, and what comes back."""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import urlsplit

WITHIN_S = 15.0
CLOSED = 0
"""In place of a status, where the connection was ended without an answer."""


class Answer(NamedTuple):
    """The first answer that came, as far as it came."""

    status: int
    head: bytes
    body: bytes


def connect(url: str) -> socket.socket:
    """A new connection to the place of a URL."""
    place = urlsplit(url)
    assert place.hostname and place.port
    return socket.create_connection((place.hostname, place.port), WITHIN_S)


def exchange(url: str, request: bytes) -> Answer:
    """Send bytes, and read until the other side has nothing more to say."""
    with connect(url) as line:
        try:
            line.sendall(request)
            return read_answer(line)
        except (ConnectionError, TimeoutError):
            return Answer(CLOSED, b"", b"")


def read_answer(line: socket.socket) -> Answer:
    """The next answer on a connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = line.recv(65_536)
        if not part:
            return Answer(CLOSED, received, b"")
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (
            int(row[15:])
            for row in head.lower().split(b"\r\n")
            if row.startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length:
        part = line.recv(65_536)
        if not part:
            break
        body += part
    return Answer(int(head.split(b" ", 2)[1]), head, body)


def request(
    method: str,
    target: bytes,
    *headers: bytes,
    host: bytes = b"127.0.0.1",
    body: bytes = b"",
    length: bool = True,
) -> bytes:
    """A request as bytes, that asks for the connection to end with its answer."""
    rows = [method.encode() + b" " + target + b" HTTP/1.1", b"Host: " + host]
    rows += [*headers, b"Connection: close"]
    if body and length:
        rows.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(rows) + b"\r\n\r\n" + body
