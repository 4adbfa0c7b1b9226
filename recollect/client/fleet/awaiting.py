"""The lines to several endpoints, for asyncio."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection

from recollect.client import forking, sockets
from recollect.client.async_subscribing import Request
from recollect.client.async_transport import AsyncTransport
from recollect.client.calling import AttemptAt, Look, Outcome
from recollect.client.endpoints import Named
from recollect.client.fleet.calling import tell
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.members import Member
from recollect.client.fleet.names import LOOK_TIMEOUT_S, addresses_in
from recollect.client.fleet.probing import ROUND_S_MIN, Probes
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError


class AsyncFleetTransport:
    """A transport for each endpoint, made when it is first needed. Lives on the event loop."""

    def __init__(self, fleet: Fleet, make: Callable[[str], AsyncTransport]) -> None:
        self._fleet = fleet
        self._make = make
        self._by_endpoint: dict[str, AsyncTransport] = {}
        self._closed = False

    async def take(self, step: AttemptAt | Look) -> Outcome:
        """Do what a plan wants done."""
        if isinstance(step, Look):
            await self.look(step.timeout_s)
            return None
        try:
            frame, request_id, timeout_s, endpoint = step
            return await self.at(endpoint).request(frame, request_id, timeout_s)
        except RecollectError as error:
            return error

    def staying(self) -> Request:
        """A way to ask one endpoint, as long as that is healthy, and then another."""
        return Staying(self._fleet, self).request

    async def look(self, timeout_s: float) -> None:
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
        self._keep(self._fleet.looked(names.learn(found)))

    def at(self, endpoint: str) -> AsyncTransport:
        """The transport of an endpoint."""
        if self._closed:
            raise sockets.closed()
        found = self._by_endpoint.get(endpoint)
        if found is None:
            found = self._by_endpoint[endpoint] = self._make(endpoint)
        return found

    def _keep(self, endpoints: Collection[str]) -> None:
        for endpoint in [*self._by_endpoint]:
            if endpoint not in endpoints:
                self._by_endpoint.pop(endpoint).close()

    def close(self) -> None:
        """Close all lines; requests under way end with ClientClosed. Once is enough."""
        self._closed = True
        for transport in self._by_endpoint.values():
            transport.close()


async def _look_up(loop: asyncio.AbstractEventLoop, name: Named) -> list[str]:
    try:
        found = await loop.getaddrinfo(name.host, name.port, type=socket.SOCK_STREAM)
        return addresses_in(found)
    except OSError:
        return []


class Staying:
    """Requests to one endpoint, as long as that is healthy. For one task at a time, which tries
    again by itself and then gets another."""

    def __init__(self, fleet: Fleet, transport: AsyncFleetTransport) -> None:
        self._fleet = fleet
        self._transport = transport
        self._stay: Member | None = None

    async def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame and return the reply with this id."""
        if self._fleet.names.is_due():
            await self._transport.look(timeout_s)
        choice = self._fleet.choose(stay=self._stay, waits=True)
        self._stay = choice.member
        outcome: Outcome = None
        try:
            transport = self._transport.at(choice.member.endpoint)
            outcome = await transport.request(frame, request_id, timeout_s)
            return outcome
        except RecollectError as error:
            outcome = error
            raise
        finally:
            if outcome is None:
                self._fleet.abandoned(choice)
            else:
                tell(self._fleet, choice, outcome)


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
        self._task: asyncio.Task[None] | None = None
        fleet.on_away = self.wake
        forking.register(self)

    def after_fork(self) -> None:
        forking.keep_unclosed(self._task)
        self._task = None

    def wake(self) -> None:
        """Begin to probe, unless that is under way."""
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while (pause_s := self._fleet.probe_in_s()) is not None:
                if self._client() is None:
                    return
                await asyncio.sleep(max(pause_s, ROUND_S_MIN))
                if self._fleet.names.is_due(somebody_away=True):
                    await self._transport.look(LOOK_TIMEOUT_S)
                while (choice := self._fleet.to_probe()) is not None:
                    outcome: Outcome = sockets.closed()
                    try:
                        outcome = await self._transport.take(self._probes.attempt(choice))
                    finally:
                        self._probes.learn(choice, outcome)
        finally:
            self._task = None

    def close(self) -> None:
        """Probe no more. Once is enough."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
