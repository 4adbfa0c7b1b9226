"""ZeroMQ sockets as both transports use them: how they are opened, watched and closed.

ZeroMQ's own errors are translated here and nowhere else.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import NamedTuple, TypeAlias, cast

import msgspec
import zmq

from recollect.client import forking
from recollect.client.keys import Keys
from recollect.protocol.envelope import Reply, decode_reply
from recollect.protocol.errors import (
    ClientClosed,
    ConnectionLost,
    InvalidArgument,
    RecollectError,
    RequestTimeout,
    Unauthenticated,
    Unreachable,
)

REPLY_BYTES_MAX = 256 * 1024 * 1024
SOCKETS_MAX = 16_384
QUEUE_LENGTH_MAX = 1_024
HEARTBEAT_IVL_MS = 2_000
HEARTBEAT_TIMEOUT_MS = 3_000
RECONNECT_IVL_MS = 50
RECONNECT_IVL_MS_MAX = 400
MONITORED = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)

ZmqSocket: TypeAlias = "zmq.Socket[bytes]"

# One context, with one I/O thread of ZeroMQ's, serves all clients of a process.
_context: zmq.Context[ZmqSocket] | None = None
_context_pid = 0


def context() -> zmq.Context[ZmqSocket]:
    """The context of this process; a forked child gets one of its own."""
    global _context, _context_pid
    if _context is None or _context_pid != os.getpid():
        if _context is not None:
            forking.keep_unclosed(_context)
        _context, _context_pid = zmq.Context(), os.getpid()
        _context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)
    return _context


def check_endpoint(endpoint: str) -> None:
    """Refuse what is not the address of an orchestrator."""
    if not isinstance(endpoint, str) or not endpoint.startswith(("tcp://", "ipc://")):
        raise InvalidArgument(
            f"endpoint must look like tcp://host:port or ipc://path, not {endpoint!r}.",
            field="endpoint",
        )


def open_dealer(endpoint: str, keys: Keys | None = None) -> tuple[ZmqSocket, ZmqSocket]:
    """A connecting DEALER socket, and its monitor, which reports only what went wrong."""
    dealer: ZmqSocket | None = None
    try:
        dealer = context().socket(zmq.DEALER)
        dealer.linger = 0
        # Queue nothing for a peer that is not there: such a socket is simply not writable.
        dealer.set(zmq.IMMEDIATE, 1)
        dealer.set(zmq.SNDHWM, QUEUE_LENGTH_MAX)
        dealer.set(zmq.RCVHWM, QUEUE_LENGTH_MAX)
        dealer.set(zmq.MAXMSGSIZE, REPLY_BYTES_MAX)
        dealer.set(zmq.HEARTBEAT_IVL, HEARTBEAT_IVL_MS)
        dealer.set(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
        dealer.set(zmq.RECONNECT_IVL, RECONNECT_IVL_MS)
        dealer.set(zmq.RECONNECT_IVL_MAX, RECONNECT_IVL_MS_MAX)
        # With this option ZeroMQ takes localhost for ::1 alone, where few servers listen.
        dealer.set(zmq.IPV6, 0 if endpoint.startswith("tcp://localhost:") else 1)
        if keys is not None:
            dealer.set(zmq.CURVE_PUBLICKEY, keys.public_key)
            dealer.set(zmq.CURVE_SECRETKEY, keys.secret_key)
            dealer.set(zmq.CURVE_SERVERKEY, keys.server_key)
        monitor = dealer.get_monitor_socket(MONITORED)
        dealer.connect(endpoint)
    except zmq.ZMQError as error:
        if dealer is not None:
            dealer.close(0)
        if error.errno in (zmq.EINVAL, zmq.EPROTONOSUPPORT, errno.ENODEV):
            raise InvalidArgument(
                f"endpoint {endpoint!r} cannot be connected to: {error}.", field="endpoint"
            ) from error
        raise translated(error, endpoint) from error
    return dealer, monitor


def close_dealer(dealer: ZmqSocket) -> None:
    """Close a socket with its monitor, and drop what it has not sent."""
    if not dealer.closed:
        monitor: ZmqSocket = dealer.get_monitor_socket()
        dealer.disable_monitor()
        monitor.close(0)
        dealer.close(0)


# As plain numbers: the enumerations that zmq has for them cost several microseconds at each use.
CAN_RECEIVE = int(zmq.POLLIN)
CAN_SEND = int(zmq.POLLOUT)
_EVENTS = int(zmq.EVENTS)


def events_of(socket: ZmqSocket) -> int:
    """What can be done with a socket: CAN_RECEIVE, CAN_SEND. Asking re-arms its descriptor."""
    return cast(int, socket.get(_EVENTS))


def descriptor_of(socket: ZmqSocket) -> int:
    """The descriptor that becomes readable whenever the events of a socket may have changed."""
    return cast(int, socket.get(zmq.FD))


class Heard(NamedTuple):
    """What a monitor reported since it was last asked."""

    lost: bool = False
    """The connection was lost."""
    turned_away: bool = False
    """The other side does not know our key: this socket will not connect again by itself."""
    unlike: bool = False
    """One side asks for keys and the other has none: the same."""
    broken_off: int = 0
    """How often the other side ended a connection before it was made, and did not say why."""


NOTHING_HEARD = Heard()


def hear(monitor: ZmqSocket) -> Heard:
    """What went wrong with the connection since this was last asked."""
    heard = NOTHING_HEARD
    try:
        while True:
            event, _address = monitor.recv_multipart(zmq.NOBLOCK)
            number = int.from_bytes(event[:2], sys.byteorder)
            value = int.from_bytes(event[2:6], sys.byteorder)
            if number == zmq.EVENT_DISCONNECTED:
                heard = heard._replace(lost=True)
            elif number == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                heard = heard._replace(turned_away=True)
            elif number == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
                heard = heard._replace(broken_off=heard.broken_off + 1)
            elif value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
                heard = heard._replace(unlike=True)
    except zmq.Again:
        return heard


def denied(heard: Heard, endpoint: str, keys: Keys | None) -> Unauthenticated | None:
    """Why we were not let in, if that was said."""
    if heard.unlike and keys is None:
        return Unauthenticated(
            f"The orchestrator at {endpoint} asks for a key: name a key file with key_file or "
            "RECOLLECT_KEY_FILE. `recollect keys new NAME`, run where it is served, makes one.",
            endpoint=endpoint,
        )
    if heard.unlike and keys is not None:
        return Unauthenticated(
            f"What listens at {endpoint} asks for no key, so it cannot show that it is the "
            f"orchestrator of {keys.path}. Do without the key file, or set access.require_keys "
            "there.",
            endpoint=endpoint,
        )
    if heard.turned_away and keys is not None:
        return Unauthenticated(
            f"The orchestrator at {endpoint} does not know the key in {keys.path}: it was revoked, "
            "or made for another one. `recollect keys new NAME`, run where it is served, makes "
            "another.",
            endpoint=endpoint,
        )
    return None


def read_reply(frame: bytes, endpoint: str) -> Reply:
    """The reply in a frame; whoever sends anything else is not an orchestrator."""
    try:
        return decode_reply(frame)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ConnectionLost(
            f"What answers at {endpoint} does not speak the Recollect protocol: {error}."
        ) from error


def translated(error: zmq.ZMQError, endpoint: str) -> RecollectError:
    """Our error for one of ZeroMQ's."""
    if error.errno in (zmq.ETERM, zmq.ENOTSOCK):
        return closed()
    return Unreachable(f"No connection to {endpoint} could be made: {error}.", endpoint=endpoint)


def unreachable(endpoint: str, broken_off: int = 0, keys: Keys | None = None) -> Unreachable:
    if not broken_off:
        return Unreachable(
            f"No orchestrator answers at {endpoint}: start one with `recollect up`, "
            "or set RECOLLECT_ENDPOINT.",
            endpoint=endpoint,
        )
    if keys is None:
        doubt = "It may ask for a key (key_file, RECOLLECT_KEY_FILE)"
    else:
        doubt = f"The server_key in {keys.path} may be another's, it may ask for no key at all"
    return Unreachable(
        f"What listens at {endpoint} breaks off every connection at once. {doubt}, or what is "
        "behind a tunnel may be away.",
        endpoint=endpoint,
    )


def connection_lost(endpoint: str) -> ConnectionLost:
    return ConnectionLost(
        f"The connection to {endpoint} broke before the answer came.", endpoint=endpoint
    )


def no_answer(endpoint: str) -> RequestTimeout:
    return RequestTimeout(
        f"No answer from {endpoint} in time. Whether the request took effect is not known.",
        endpoint=endpoint,
    )


def closed() -> ClientClosed:
    return ClientClosed("The client was closed.")
