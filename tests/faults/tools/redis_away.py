"""Ways in which a Redis is away for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.harness.redis import RedisServer, SilentServer

Way = Callable[[RedisServer], AbstractContextManager[None]]


@contextmanager
def frozen(server: RedisServer) -> Iterator[None]:
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


@contextmanager
def killed(server: RedisServer) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def silent(server: RedisServer) -> Iterator[None]:
    server.kill()
    with SilentServer(server.socket):
        yield
    server.socket.unlink()
    server.start()


WAYS: tuple[Way, ...] = (killed, frozen, silent)
