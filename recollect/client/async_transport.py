"""The asyncio transport: one connection carries all requests, told apart by their ids.

ZeroMQ's file descriptor is edge-triggered: it becomes readable when something changed, not while
there is something to read. So whenever we touched the socket we look at its events ourselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import zmq

from recollect.client import forking, sockets
from recollect.client.deadlines import Deadlines
from recollect.client.keys import Keys
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError, RequestTimeout

# Before a request, what the monitor has to say is heard if it was not for so long.
UNHEARD_S = 0.005
NO_WAIT = int(zmq.NOBLOCK)


class Outgoing(msgspec.Struct, frozen=True):
    """A request that is about to be sent."""

    frame: bytes
    request_id: int
    deadline_s: float
    future: asyncio.Future[Reply | None]


class AsyncTransport:
    """One line to one endpoint. It belongs to the event loop that uses it first."""

    def __init__(
        self,
        endpoint: str,
        *,
        keys: Keys | None = None,
        connect_s: float = 1.0,
        in_flight_max: int = 1024,
        clock: Callable[[], float] = time.monotonic,
        is_spared: Callable[[], bool] | None = None,
    ) -> None:
        """`is_spared`: whether another can be asked instead, so that nobody need wait until a lost
        connection is back."""
        sockets.check_endpoint(endpoint)
        self._is_spared = is_spared
        self._endpoint = endpoint
        self._keys = keys
        self._connect_s = connect_s
        self._in_flight_max = in_flight_max
        self._clock = clock
        self._closed = False
        self._start()
        forking.register(self)

    def _start(self) -> None:
        # Everything here is touched only by the loop's own thread.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dealer: sockets.ZmqSocket | None = None
        self._monitor: sockets.ZmqSocket | None = None
        self._room = asyncio.Semaphore(self._in_flight_max)
        # What leaves at the end of this turn of the loop, and what has left and is not answered.
        self._outgoing: list[Outgoing] = []
        self._pending: dict[int, asyncio.Future[Reply | None]] = {}
        self._deadlines = Deadlines(self._clock, self._expire)
        self._connecting: set[asyncio.Future[None]] = set()
        self._heard_at_s = 0.0
        # Whether this socket was connected and lost that; whoever cannot send asks.
        self._lost = False
        # How often a connection was broken off since the last one that was made.
        self._broken_off = 0

    def after_fork(self) -> None:
        forking.keep_unclosed(
            self._dealer, self._monitor, self._pending, self._deadlines, self._loop
        )
        self._start()

    async def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame and return the reply with this id."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._bind(loop)
        deadline_s = self._clock() + timeout_s
        if self._room.locked():
            await self._await_room(timeout_s)
        else:
            await self._room.acquire()
        try:
            until_s: float | None = None
            while True:
                reply = await self._queued(loop, frame, request_id, deadline_s)
                if reply is not None:
                    return reply
                if self._lost and self._is_spared is not None and self._is_spared():
                    raise sockets.unreachable(self._endpoint)
                if until_s is None:
                    until_s = min(deadline_s, self._clock() + self._connect_s)
                await self._await_connection(until_s - self._clock())
                self._hear()
        except zmq.ZMQError as error:
            raise sockets.translated(error, self._endpoint) from error
        finally:
            self._pending.pop(request_id, None)
            self._deadlines.drop(request_id)
            self._room.release()

    def _queued(
        self, loop: asyncio.AbstractEventLoop, frame: bytes, request_id: int, deadline_s: float
    ) -> asyncio.Future[Reply | None]:
        """What becomes of a request that leaves with all others of this turn of the event loop: its
        reply, or None if it could not be sent because there is no connection.

        Each frame that is sent alone wakes ZeroMQ's thread, which takes the processor from us; one
        behind the other they wake it about once.
        """
        if self._closed:
            raise sockets.closed()
        if not self._outgoing:
            loop.call_soon(self._send_queued)
        future: asyncio.Future[Reply | None] = loop.create_future()
        self._outgoing.append(Outgoing(frame, request_id, deadline_s, future))
        return future

    def _bind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._closed:
            raise sockets.closed()
        if self._loop is not None:
            raise RuntimeError(
                "This AsyncMemoryClient is used from a second event loop: "
                "make one client for each loop."
            )
        self._loop = loop
        self._connect()

    def _connect(self) -> None:
        assert self._loop is not None
        self._dealer, self._monitor = sockets.open_dealer(self._endpoint, self._keys)
        # The send of pyzmq's core, without the checks of options that are never used here.
        self._send_frame = super(zmq.Socket, self._dealer).send
        self._lost = False
        self._loop.add_reader(sockets.descriptor_of(self._dealer), self._look)
        self._loop.add_reader(sockets.descriptor_of(self._monitor), self._hear)
        # A descriptor tells of changes only once its socket has been looked at.
        self._loop.call_soon(self._hear)

    def _disconnect(self) -> None:
        if self._loop is None or self._dealer is None or self._monitor is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(sockets.descriptor_of(self._dealer))
            self._loop.remove_reader(sockets.descriptor_of(self._monitor))
        sockets.close_dealer(self._dealer)
        self._dealer = self._monitor = None

    async def _await_room(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._room.acquire()
        except TimeoutError:
            raise RequestTimeout(
                f"{self._in_flight_max} calls were under way until the deadline (in_flight_max).",
                limit="in_flight_max",
            ) from None

    def _send_queued(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        try:
            if self._clock() - self._heard_at_s > UNHEARD_S:
                self._hear()
            if self._dealer is None and not self._closed:
                self._connect()
            for one in outgoing:
                self._send(one)
            self._look()
        except (zmq.ZMQError, RecollectError) as failed:
            error = (
                sockets.translated(failed, self._endpoint)
                if isinstance(failed, zmq.ZMQError)
                else failed
            )
            _fail((one.future for one in outgoing), error)

    def _send(self, one: Outgoing) -> None:
        if one.future.done():
            return
        assert self._dealer is not None
        try:
            self._send_frame(one.frame, NO_WAIT)
        except zmq.Again:
            one.future.set_result(None)
            return
        self._broken_off = 0
        self._pending[one.request_id] = one.future
        self._deadlines.add(one.request_id, one.deadline_s)

    async def _await_connection(self, timeout_s: float) -> None:
        assert self._loop is not None
        connected: asyncio.Future[None] = self._loop.create_future()
        self._connecting.add(connected)
        try:
            self._look()
            async with asyncio.timeout(timeout_s):
                await connected
        except TimeoutError:
            raise sockets.unreachable(self._endpoint, self._broken_off, self._keys) from None
        finally:
            self._connecting.discard(connected)

    def _look(self) -> None:
        """Take the replies that have come, and wake those who wait for the connection."""
        while self._dealer is not None:
            events = sockets.events_of(self._dealer)
            if events & sockets.CAN_SEND and self._connecting:
                for connected in self._connecting:
                    if not connected.done():
                        connected.set_result(None)
            if not events & sockets.CAN_RECEIVE:
                return
            self._receive_all(self._dealer)

    def _receive_all(self, dealer: sockets.ZmqSocket) -> None:
        """Take what is there without asking before each reply, which costs as much as taking it."""
        for _ in range(max(1, len(self._pending))):
            try:
                frame = dealer.recv(NO_WAIT)
            except zmq.Again:
                return
            self._receive(frame)
            if self._dealer is not dealer:
                return

    def _receive(self, frame: bytes) -> None:
        try:
            reply = sockets.read_reply(frame, self._endpoint)
        except RecollectError as error:
            # Whose reply it was cannot be known. Begin anew; each call decides about its retry.
            self._disconnect()
            _fail(self._pending.values(), error)
            self._connect()
            return
        request_id = reply.id
        if request_id is None and len(self._pending) == 1:
            # It answers a request too broken to have an id; there is only one it can be.
            (request_id,) = self._pending
        future = self._pending.pop(request_id, None) if isinstance(request_id, int) else None
        if future is not None and not future.done():
            future.set_result(reply)

    def _hear(self) -> None:
        """Notice a lost connection: no reply comes any more to what was sent on it."""
        self._heard_at_s = self._clock()
        if self._monitor is None:
            return
        heard = sockets.hear(self._monitor)
        self._broken_off += heard.broken_off
        if heard.lost:
            self._lost = True
            self._look()
            _fail(self._pending.values(), sockets.connection_lost(self._endpoint))
        if denied := sockets.denied(heard, self._endpoint, self._keys):
            # The socket gives up for good; the next request opens another.
            self._disconnect()
            _fail(self._connecting, denied)

    def _expire(self, request_id: int) -> None:
        future = self._pending.get(request_id)
        if future is not None and not future.done():
            future.set_exception(sockets.no_answer(self._endpoint))

    def close(self) -> None:
        """Close the line; requests under way end with ClientClosed. Once is enough."""
        if self._closed:
            return
        self._closed = True
        self._deadlines.close()
        _fail((*self._pending.values(), *(one.future for one in self._outgoing)), sockets.closed())
        _fail(self._connecting, sockets.closed())
        self._disconnect()


def _fail(futures: Iterable[asyncio.Future[Any]], error: RecollectError) -> None:
    """End those that still wait, each with an error of its own."""
    for future in futures:
        if not future.done():
            future.set_exception(type(error)(error.message, **error.details))
