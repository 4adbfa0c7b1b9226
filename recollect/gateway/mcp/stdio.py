"""MCP over stdin and stdout: for one client that started this process, until it closes stdin."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TypeVar

from mcp.server.stdio import stdio_server

from recollect.client.encoding import Speaker
from recollect.client.places import Find
from recollect.event_loop import quickest_loop
from recollect.gateway.asking import Backend
from recollect.gateway.mcp import pipes
from recollect.gateway.mcp.calling import Calling
from recollect.gateway.mcp.server import make_server
from recollect.gateway.mcp.speaking import Given
from recollect.gateway.mcp.tools import offered
from recollect.protocol.errors import TransportError, Unauthenticated
from recollect.protocol.operation import Operation

R = TypeVar("R")

# A model waits for the answer; that nobody is there should not take it long to learn.
CONNECT_S = 0.25
# How long the orchestrator is taken to be where it was found.
LOOKED_S = 0.25


class Following:
    """Asks the orchestrator wherever it is by now.

    Nobody watches over this process as over the gateway, so requests look anew: not each, because
    that reads files, but the first for a while and the one after a failure.
    """

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._clock = clock
        self._look_at_s = -math.inf

    async def ask(self, operation: Operation[R], speaker: Speaker, /) -> R:
        """Carry out an operation for somebody; raises its error."""
        if self._clock() >= self._look_at_s:
            await self._backend.follow()
            self._look_at_s = self._clock() + LOOKED_S
        try:
            return await self._backend.ask(operation, speaker)
        except (TransportError, Unauthenticated):
            self._look_at_s = -math.inf
            raise


async def serve(find: Find, *, timeout_s: float, tokens_max: int, given: Given) -> None:
    """Serve until stdin ends. That no orchestrator runs is said by each answer, not here."""
    backend = Backend(find, timeout_s=timeout_s, connect_s=CONNECT_S, lends_key=True)
    try:
        ask = Following(backend).ask
        tools = offered(given.namespace)
        server = make_server(ask, Calling(ask, tokens_max), tools, given=given)
        streams = pipes.served() if pipes.can_be_served() else stdio_server()
        async with streams as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        await backend.close()


def run(find: Find, *, timeout_s: float, tokens_max: int, given: Given) -> None:
    """Serve in this process until stdin ends."""
    with asyncio.Runner(loop_factory=quickest_loop()) as runner:
        runner.run(serve(find, timeout_s=timeout_s, tokens_max=tokens_max, given=given))
