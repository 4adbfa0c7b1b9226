"""Streams that need no key: watching the health, and reflection. So they have a bound of their own,
and take no place of the operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from grpc import StatusCode
from grpc_health.v1 import health_pb2, health_pb2_grpc

from recollect.gateway.admission import RETRY_AFTER_MS
from recollect.gateway.grpc.calls import refuse
from recollect.protocol.errors import Overloaded, ShuttingDown

UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


class OpenStreams:
    """Counts them. Lives on the event loop."""

    def __init__(self, streams_max: int) -> None:
        self._streams_max = streams_max
        self._streams = 0
        # Those that read what is asked next, and would do so for ever.
        self._reading: set[asyncio.Task[Any]] = set()
        self.ended = False
        """Whether nobody is told anything more."""

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Raises Overloaded."""
        if self._streams >= self._streams_max:
            raise Overloaded(
                f"{self._streams} others watch the health or ask what there is; try again later.",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    @contextmanager
    def until_ended(self) -> Iterator[None]:
        """Raises ShuttingDown inside, once that is so."""
        task = asyncio.current_task()
        assert task is not None
        self._reading.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self.ended or task.uncancel():
                raise
            raise ShuttingDown("The gateway is shutting down: ask another.") from None
        finally:
            self._reading.discard(task)

    def end(self) -> None:
        """They have no end of their own, and would hold up that of the server."""
        self.ended = True
        for task in self._reading:
            task.cancel()


class BoundedReflection:
    """Reflection for so many at once."""

    def __init__(self, servicer: Any, streams: OpenStreams) -> None:
        self._servicer = servicer
        self._streams = streams

    async def answer(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        try:
            with self._streams.one_more(), self._streams.until_ended():
                async for answer in self._servicer.ServerReflectionInfo(requests, context):
                    yield answer
        except (Overloaded, ShuttingDown) as error:
            await refuse(context, error)


class BoundedHealth(health_pb2_grpc.HealthServicer):
    """Health for so many watchers at once. One that does not read what it is told holds up itself
    alone: the servicer of the package would hold a lock for it meanwhile, and so everything."""

    def __init__(self, streams: OpenStreams) -> None:
        self._streams = streams
        self._statuses: dict[str, Any] = {}
        self._changed = asyncio.Event()

    def set(self, service: str, status: Any) -> None:
        """Say so from now on."""
        if self._statuses.get(service) != status:
            self._statuses[service] = status
            self._changed.set()
            self._changed = asyncio.Event()

    def end(self) -> None:
        """Let those who watch go, once they know what was said last."""
        self._streams.end()
        self._changed.set()

    async def Check(self, request: Any, context: Any) -> Any:
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=status)

    async def Watch(self, request: Any, context: Any) -> None:
        try:
            with self._streams.one_more():
                await self._tell(request.service, context)
        except Overloaded as error:
            await refuse(context, error)

    async def _tell(self, service: str, context: Any) -> None:
        told = None
        while True:
            changed = self._changed
            status = self._statuses.get(service, UNKNOWN)
            if status != told:
                await context.write(health_pb2.HealthCheckResponse(status=status))
                told = status
            elif self._streams.ended:
                return
            else:
                await changed.wait()
