"""A web server inside a process that does more than serve."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import uvicorn

BACKLOG = 128
# What a process has open beside connections: files, the event loop's and ZeroMQ's own.
OTHER_DESCRIPTORS = 256


class AddressTaken(Exception):
    """The address of the web side cannot be had; `section` of the settings names it."""

    def __init__(self, message: str, section: str) -> None:
        super().__init__(message)
        self.section = section


class Server(uvicorn.Server):
    """A server that leaves the signals to us: they end more than it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int, *, section: str, backlog: int = BACKLOG) -> socket.socket:
    """A socket that listens there; raises AddressTaken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only on sockets that were made with their protocol named; on others an
    # answer of two parts waits 40 ms for the other side to acknowledge the first.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(backlog)
        return listening
    except OSError as error:
        listening.close()
        raise AddressTaken(
            f"The web side cannot listen at {host}:{port}: {error.strerror or error}.", section
        ) from error


def quickest_http() -> Any:
    """What speaks HTTP, as uvicorn is told: the quick parser within bounds, or the slow one where
    that is not installed, which has bounds of its own."""
    if find_spec("httptools") is None:
        return "auto"
    from recollect.web.bounded_http import BoundedHttp

    return BoundedHttp


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """Where a browser on this machine finds it."""
    name = host.strip("[]")
    if name in ("0.0.0.0", "::", ""):
        name = "127.0.0.1" if name != "::" else "::1"
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"
