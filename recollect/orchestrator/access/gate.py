"""The gate: ZeroMQ asks here, by its ZAP protocol, whether a new connection is let in.

It asks over a socket inside the process and keeps the connection waiting for the answer. The answer
names the public key; ZeroMQ attaches it to every message of that connection, which is how a message
shows whose it is. A connection that never comes so far, since it has no key or does not know ours,
is told of by the monitor of the listening socket.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TypeAlias

import zmq
from zmq.utils import z85

from recollect.orchestrator.access.attempts import Attempts
from recollect.orchestrator.access.keyring import Keyring

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
ZAP_VERSION = b"1.0"
ZAP_DOMAIN = b"recollect"
ZAP_FRAMES = 7
MECHANISM = b"CURVE"
KEY_BYTES = 32
TURN_MESSAGES_MAX = 256
UNFINISHED = "no key, or broken off before one was asked for"
FAILURES = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
REASONS = {
    int(zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH): "no key",
    int(zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC): "not made for the key of this orchestrator",
}

ZmqSocket: TypeAlias = "zmq.Socket[bytes]"


class Gate:
    """Answers for one listening socket. Lives on the event loop, and never waits."""

    def __init__(self, listener: ZmqSocket, secret_key: str) -> None:
        """Guard a socket that is not bound yet; who comes before `start` waits."""
        context: zmq.Context[ZmqSocket] = listener.context
        self._listener = listener
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = context.socket(zmq.REP)
        self._asked.setsockopt(zmq.LINGER, 0)
        self._asked.bind(ZAP_ENDPOINT)
        listener.setsockopt(zmq.CURVE_SERVER, 1)
        listener.setsockopt(zmq.CURVE_SECRETKEY, secret_key.encode())
        # Without an answer from here nobody is let in.
        listener.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
        listener.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        self._monitor: ZmqSocket = listener.get_monitor_socket(FAILURES)

    def start(self, keyring: Keyring, attempts: Attempts) -> None:
        """Begin to answer."""
        self._keyring = keyring
        self._attempts = attempts
        self._loop = asyncio.get_running_loop()
        for socket, turn in ((self._asked, self._answer), (self._monitor, self._hear)):
            self._loop.add_reader(socket.fileno(), turn)
            self._loop.call_soon(turn)

    def close(self) -> None:
        """Answer nobody any more; nobody is let in from then on."""
        if self._loop is not None and not self._asked.closed:
            for socket in (self._asked, self._monitor):
                self._loop.remove_reader(socket.fileno())
        self._listener.disable_monitor()
        self._monitor.close(0)
        self._asked.close(0)

    def _answer(self) -> None:
        """Answer those who wait, a bounded number at a turn."""
        if self._asked.closed or self._loop is None:
            return
        try:
            for _ in range(TURN_MESSAGES_MAX):
                frames = self._asked.recv_multipart(zmq.NOBLOCK)
                self._asked.send_multipart(self._verdict(frames), zmq.NOBLOCK)
            self._loop.call_soon(self._answer)
        except zmq.Again:
            pass

    def _verdict(self, frames: list[bytes]) -> list[bytes]:
        request_id = frames[1] if len(frames) > 1 else b""
        key = None
        if len(frames) == ZAP_FRAMES and frames[0] == ZAP_VERSION and frames[5] == MECHANISM:
            key = z85.encode(frames[6]).decode() if len(frames[6]) == KEY_BYTES else None
        if self._keyring.identity(key) is not None:
            assert key is not None
            return [ZAP_VERSION, request_id, b"200", b"OK", key.encode(), b""]
        address = frames[3].decode(errors="replace") if len(frames) > 3 else ""
        name = self._keyring.revoked_name(key)
        reason = "unknown key" if name is None else "revoked key"
        self._attempts.denied(key or "", address, reason, name)
        return [ZAP_VERSION, request_id, b"400", b"This key is not known.", b"", b""]

    def _hear(self) -> None:
        """Note who failed before a key could be asked for; ZeroMQ does not tell from where."""
        if self._monitor.closed or self._loop is None:
            return
        try:
            for _ in range(TURN_MESSAGES_MAX):
                event, _endpoint = self._monitor.recv_multipart(zmq.NOBLOCK)
                value = int.from_bytes(event[2:6], sys.byteorder)
                self._attempts.denied("", "", REASONS.get(value, UNFINISHED))
            self._loop.call_soon(self._hear)
        except zmq.Again:
            pass
