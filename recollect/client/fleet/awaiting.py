"""The lines to several endpoints, for asyncio."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeVar

from recollect.client import forking
from recollect.client.async_subscribing import Request
from recollect.client.async_transport import AsyncTransport
from recollect.client.calling import Look, Outcome
from recollect.client.endpoints import Named
from recollect.client.fleet.calling import FleetStep
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.lines import Lines
from recollect.client.fleet.names import LOOK_TIMEOUT_S, addresses_in
from recollect.client.fleet.probing import ROUND_S_MIN, Probes
from recollect.client.fleet.staying import Staying
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError

R = TypeVar("R")


class AsyncFleetTransport:
    """The lines to a fleet. Lives on the event loop."""

    def __init__(self, fleet: Fleet, make: Callable[[str], AsyncTransport]) -> None:
        self._fleet = fleet
        self._lines = Lines(make)
        self.on_first_use: Callable[[], None] | None = None
        """Called once, on the loop, when that is known: by the first request."""

    async def take(self, step: FleetStep) -> Outcome:
        """Do what a plan wants done."""
        if self.on_first_use is not None:
            begin, self.on_first_use = self.on_first_use, None
            begin()
        if isinstance(step, Look):
            await self._look(step.timeout_s)
            return None
        try:
            frame, request_id, timeout_s, endpoint = step
            return await self._lines.at(endpoint).request(frame, request_id, timeout_s)
        except RecollectError as error:
            return error

    async def follow(self, steps: Generator[FleetStep, Outcome, R]) -> R:
        """Do one step after another, and return what came of them all."""
        try:
            step = next(steps)
            while True:
                step = steps.send(await self.take(step))
        except StopIteration as end:
            result: R = end.value
            return result
        finally:
            steps.close()

    def staying(self) -> Request:
        """A way to ask one endpoint, as long as that is healthy, and then another."""
        stay = Staying(self._fleet)

        async def request(frame: bytes, request_id: int, timeout_s: float) -> Reply:
            return await self.follow(stay.ask(frame, request_id, timeout_s))

        return request

    async def _look(self, timeout_s: float) -> None:
        """Find out where the names lead, or leave it if that takes too long."""
        names = self._fleet.names
        found: dict[Named, list[str]] = {}
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(min(timeout_s, LOOK_TIMEOUT_S)):
                for name in names.begin():
                    found[name] = await _look_up(loop, name)
        except TimeoutError:
            pass
        self._lines.keep(self._fleet.looked(names.learn(found)))

    def close(self) -> None:
        """Close all lines; requests under way end with ClientClosed. Once is enough."""
        self._lines.close()


async def _look_up(loop: asyncio.AbstractEventLoop, name: Named) -> list[str]:
    try:
        found = await loop.getaddrinfo(name.host, name.port, type=socket.SOCK_STREAM)
        return addresses_in(found)
    except OSError:
        return []


class ProbingTask:
    """Asks those that are away whether they are back; it runs only while there are such."""

    def __init__(
        self,
        fleet: Fleet,
        transport: AsyncFleetTransport,
        probes: Probes,
        client: Callable[[], object | None],
    ) -> None:
        """`client` is a weak reference: who forgot to close a client needs no probes for it."""
        self._fleet = fleet
        self._transport = transport
        self._probes = probes
        self._client = client
        self._closed = False
        self._start()
        fleet.on_away = self.wake
        forking.register(self)

    def _start(self) -> None:
        # The loop is set once, on it; the task is touched only there.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        # Somebody may have been found away before there was a loop to probe on.
        self._transport.on_first_use = self._begin

    def after_fork(self) -> None:
        forking.keep_unclosed(self._loop, self._task)
        self._start()

    def wake(self) -> None:
        """Begin to probe, unless that is under way. The outbox calls it from its own thread."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # The loop has ended, and the client with it.
                loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._task is None and not self._closed:
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while (pause_s := self._fleet.probe_in_s()) is not None:
                if self._client() is None:
                    return
                await asyncio.sleep(max(pause_s, ROUND_S_MIN))
                await self._transport.follow(self._probes.round())
        finally:
            self._task = None

    def close(self) -> None:
        """Probe no more. Once is enough."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
