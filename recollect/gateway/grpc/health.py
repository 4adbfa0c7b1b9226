"""Health checking: it serves for as long as the orchestrator answers."""

from __future__ import annotations

import asyncio

from grpc_health.v1 import health_pb2

from recollect.gateway.asking import Backend
from recollect.gateway.grpc.proto_file import PACKAGE, SERVICE
from recollect.gateway.grpc.watching import BoundedHealth, OpenStreams
from recollect.protocol.errors import RecollectError

ASK_EVERY_S = 1.0
ANSWERED_WITHIN_S = 2.0

# The empty name is the whole server.
SERVICES = ("", f"{PACKAGE}.{SERVICE}")

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """Asks the orchestrator from time to time, and says how it is to whoever asks for that."""

    def __init__(self, backend: Backend, streams: OpenStreams) -> None:
        self._backend = backend
        self.servicer = BoundedHealth(streams)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find out once, then go on finding out."""
        await self._look()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Say for the last time how it is: nothing is served from now on."""
        if self._watching is not None:
            self._watching.cancel()
        self._say(NOT_SERVING)
        self.servicer.end()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        try:
            await self._backend.ping(ANSWERED_WITHIN_S)
            answers = True
        except RecollectError:
            answers = False
        self._say(SERVING if answers else NOT_SERVING)

    def _say(self, status: int) -> None:
        for service in SERVICES:
            self.servicer.set(service, status)
