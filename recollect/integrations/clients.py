"""The clients of one adapter: a blocking one, and one for each event loop that asks.

A framework may call from a thread, from one event loop after another, or from both. A blocking
client may be used by any thread; an asyncio client belongs to its loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import ClientClosed, InvalidArgument


class Clients:
    """Makes clients when they are first needed, all with the same options."""

    def __init__(self, endpoint: str | None, options: Mapping[str, Any]) -> None:
        _check(options.get("raise_errors", True), options.get("outbox") is not None)
        self._endpoint = endpoint
        self._options = dict(options)
        # The lock guards all below it, and is never held during a call.
        self._lock = threading.Lock()
        self._blocking: MemoryClient | None = None
        self._awaiting: dict[asyncio.AbstractEventLoop, AsyncMemoryClient] = {}
        self._closed = False

    def blocking(self) -> MemoryClient:
        """The client for whoever waits in a thread."""
        with self._lock:
            self._check_open()
            if self._blocking is None:
                self._blocking = MemoryClient(self._endpoint, **self._options)
            return self._blocking

    async def awaiting(self) -> AsyncMemoryClient:
        """The client of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check_open()
            client = self._awaiting.get(loop)
            if client is not None:
                return client
            client = self._awaiting[loop] = AsyncMemoryClient(self._endpoint, **self._options)
            # A loop that has ended left its client behind; its sockets would stay open.
            ended = [other for other in self._awaiting if other.is_closed()]
            left = [self._awaiting.pop(other) for other in ended]
        for former in left:
            await former.close()
        return client

    def close(self) -> None:
        """Close the blocking client; the clients of loops are closed by `aclose` in their loop."""
        with self._lock:
            self._closed = True
            client, self._blocking = self._blocking, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the client of the running loop, those of loops that have ended, and the blocking
        one."""
        self.close()
        running = asyncio.get_running_loop()
        with self._lock:
            mine = [loop for loop in self._awaiting if loop is running or loop.is_closed()]
            clients = [self._awaiting.pop(loop) for loop in mine]
        for client in clients:
            await client.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("The adapter was closed; make a new one.")


def check_given(client: AsyncMemoryClient) -> None:
    """Refuse a client that an adapter cannot work with."""
    _check(client.raise_errors, client.has_outbox)


def _check(raise_errors: bool, has_outbox: bool) -> None:
    if not raise_errors:
        raise InvalidArgument(
            "An adapter needs errors to be raised; leave out raise_errors.", field="raise_errors"
        )
    if has_outbox:
        raise InvalidArgument(
            "An adapter goes on with the answer to what it wrote, so no write may wait; leave out "
            "outbox.",
            field="outbox",
        )
