"""The ROUTER socket on the event loop.

The socket's file descriptor only says that something may have changed, so each turn drains until
nothing is left, and looks again after sending. A peer that does not take its answers loses them
when its queue is full; it asks again by its idempotency key, and nobody else waits for it.
"""

from __future__ import annotations

import asyncio
from functools import partial

import structlog
import zmq

from recollect.config.settings import LimitsSettings, NetworkSettings
from recollect.orchestrator.serving.dispatch import Dispatcher

log = structlog.get_logger()

TURN_MESSAGES_MAX = 256
LINGER_MS = 2_000
# Beyond the payload limit a request is refused by name; beyond this the peer is cut off unread.
FRAME_SLACK = 4

# As plain numbers: pyzmq's enumerations cost on every call.
NOBLOCK = int(zmq.NOBLOCK)
NOBLOCK_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
RCVMORE = int(zmq.RCVMORE)
EVENTS = int(zmq.EVENTS)
POLLIN = int(zmq.POLLIN)


class Server:
    """Receives frames and sends answers."""

    def __init__(self, network: NetworkSettings, limits: LimitsSettings) -> None:
        """Take the endpoint; requests wait in the socket until `start`."""
        self._context = zmq.Context()
        socket = self._socket = self._context.socket(zmq.ROUTER)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        socket.setsockopt(zmq.SNDHWM, network.peer_queue_max)
        socket.setsockopt(zmq.RCVHWM, network.peer_queue_max)
        socket.setsockopt(zmq.MAXMSGSIZE, FRAME_SLACK * limits.payload_bytes_max)
        socket.setsockopt(zmq.HEARTBEAT_IVL, network.heartbeat_ms)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5 * network.heartbeat_ms)
        socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        socket.setsockopt(zmq.BACKLOG, 1024)
        socket.setsockopt(zmq.IPV6, int("[" in network.bind))
        # The send of pyzmq's core, without the checks of options that are never used here.
        self._send_frame = super(zmq.Socket, socket).send
        self.dropped = 0
        """Answers that their peer did not take or was no longer there for."""
        self._draining = False
        try:
            self._guard()
            socket.bind(network.bind)
        except BaseException:
            self._context.destroy(0)
            raise
        self.endpoint: str = socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def _guard(self) -> None:
        """Put a guard before the socket while nobody can reach it yet; here there is none."""

    def start(self, dispatcher: Dispatcher) -> None:
        """Begin to answer."""
        self._dispatcher = dispatcher
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._drain)
        self._loop.call_soon(self._drain)

    def stop(self) -> None:
        """Answer what has already arrived, then close; answers on their way are still sent."""
        self._drain()
        self._loop.remove_reader(self._socket.fileno())
        self.close()

    def close(self) -> None:
        """Let go of the endpoint."""
        self._socket.close()
        self._context.term()

    def _drain(self) -> None:
        """Take what has arrived, a bounded number at a turn, so that other work gets its turn."""
        socket = self._socket
        if socket.closed:
            return
        receive, option = socket.recv, socket.getsockopt
        self._draining = True
        try:
            for _ in range(TURN_MESSAGES_MAX):
                # By hand, since this is the hottest loop: recv_multipart costs twice as much.
                peer = receive(NOBLOCK)
                frame = receive(NOBLOCK)
                if option(RCVMORE):
                    self._receive_long(peer, frame)
                else:
                    self._dispatcher.dispatch(frame, partial(self._send, (peer,)))
            self._loop.call_soon(self._drain)
        except zmq.Again:
            pass
        finally:
            self._draining = False

    def _receive_long(self, peer: bytes, frame: bytes) -> None:
        """A message of more frames: a REQ peer's has an empty one first, others are malformed."""
        rest = self._socket.recv_multipart(zmq.NOBLOCK)
        if not frame and len(rest) == 1:
            self._dispatcher.dispatch(rest[0], partial(self._send, (peer, b"")))
        else:
            self._dispatcher.dispatch(b"", partial(self._send, (peer,)))

    def _send(self, envelope: tuple[bytes, ...], reply: bytes) -> None:
        socket = self._socket
        if socket.closed:
            self.dropped += 1
            return
        try:
            for part in envelope:
                self._send_frame(part, NOBLOCK_MORE)
            self._send_frame(reply, NOBLOCK)
        except zmq.ZMQError as error:
            self.dropped += 1
            log.debug("A peer did not take its answer.", action="reply", reason=str(error))
        if not self._draining and int(socket.getsockopt(EVENTS)) & POLLIN:
            # The edge that announced these may already have been consumed.
            self._loop.call_soon(self._drain)
