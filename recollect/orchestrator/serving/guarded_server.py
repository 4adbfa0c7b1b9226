"""The ROUTER socket behind a gate: only known keys connect, and each message shows whose it is."""

from __future__ import annotations

from functools import partial
from typing import cast

import zmq

from recollect.config.settings import LimitsSettings, NetworkSettings
from recollect.orchestrator.access.attempts import Attempts
from recollect.orchestrator.access.door import Door
from recollect.orchestrator.access.gate import Gate
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.serving.dispatch import Dispatcher
from recollect.orchestrator.serving.server import NOBLOCK, RCVMORE, TURN_MESSAGES_MAX, Server

# The property under which ZeroMQ keeps what the gate said of the connection. Properties that a
# client gives itself in the handshake come behind it and replace nothing.
USER_ID = "User-Id"
PEER_ID_BYTES = 5
"""So long is a routing id that ZeroMQ gives, and begins with a zero."""


class GuardedServer(Server):
    """Receives frames and sends answers, encrypted, to those who have a key."""

    def __init__(self, network: NetworkSettings, limits: LimitsSettings, secret_key: str) -> None:
        """Take the endpoint; who comes before `open_gate` waits."""
        self._secret_key = secret_key
        self._gate: Gate | None = None
        super().__init__(network, limits)

    def _guard(self) -> None:
        self._gate = Gate(self._socket, self._secret_key)

    def open_gate(self, keyring: Keyring, attempts: Attempts) -> None:
        """Let those in who are known; their requests wait until `start`."""
        assert self._gate is not None
        self._gate.start(keyring, attempts)
        self._keyring = keyring
        self._attempts = attempts

    def start(self, dispatcher: Dispatcher) -> None:
        self._door = Door(self._keyring, dispatcher, self._attempts)
        super().start(dispatcher)

    def close(self) -> None:
        if self._gate is not None:
            self._gate.close()
        super().close()

    def _drain(self) -> None:
        socket = self._socket
        if socket.closed:
            return
        receive, option, enter = socket.recv, socket.getsockopt, self._door.enter
        self._draining = True
        try:
            for _ in range(TURN_MESSAGES_MAX):
                peer = receive(NOBLOCK)
                # Not copied, because only the message itself can be asked for its properties.
                message = receive(NOBLOCK, False)
                user = _user_of(message)
                if option(RCVMORE):
                    self._receive_parts(peer, message.bytes, user)
                elif peer[0] or len(peer) != PEER_ID_BYTES:
                    self._door.refuse_named(message.bytes, partial(self._send, (peer,)))
                else:
                    enter(message.bytes, partial(self._send, (peer,)), user)
            self._loop.call_soon(self._drain)
        except zmq.Again:
            pass
        finally:
            self._draining = False

    def _receive_parts(self, peer: bytes, frame: bytes, user: str | None) -> None:
        """As `_receive_long`: a REQ peer's message has an empty frame first."""
        rest = self._socket.recv_multipart(zmq.NOBLOCK)
        if peer[0] or len(peer) != PEER_ID_BYTES:
            envelope = (peer, b"") if not frame else (peer,)
            self._door.refuse_named(rest[-1], partial(self._send, envelope))
        elif not frame and len(rest) == 1:
            self._door.enter(rest[0], partial(self._send, (peer, b"")), user)
        else:
            self._door.enter(b"", partial(self._send, (peer,)), user)


def _user_of(message: zmq.Frame) -> str | None:
    try:
        return cast(str, message.get(USER_ID))
    except zmq.ZMQError:
        return None  # Whoever has none is nobody.
