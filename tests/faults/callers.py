"""Callers by hand with any key or none: what they are told, and whether they were let in."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

from recollect.protocol.envelope import decode_reply
from recollect.protocol.key_files import KeyFile

ANSWER_WITHIN_S = 10.0
FAILURES = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)
WATCHED = FAILURES | zmq.EVENT_HANDSHAKE_SUCCEEDED


class Credentials(NamedTuple):
    """How a caller presents itself."""

    kind: str
    public_key: str | None = None
    secret_key: str | None = None
    server_key: str | None = None
    password: str | None = None


NO_KEY = Credentials("no key")
PASSWORD = Credentials("a password", password="secret")


def key_of(keys: KeyFile) -> Credentials:
    return Credentials(keys.name, keys.public_key, keys.secret_key, keys.server_key)


class Caller:
    """One DEALER socket that sends as soon as it is let in, and knows how its attempts ended."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        credentials: Credentials,
        routing_id: bytes | None = None,
    ) -> None:
        self._dealer = context.socket(zmq.DEALER)
        self._dealer.linger = 0
        if routing_id is not None:
            self._dealer.setsockopt(zmq.ROUTING_ID, routing_id)
        if credentials.password is not None:
            self._dealer.plain_username = b"alice"
            self._dealer.plain_password = credentials.password.encode()
        if credentials.public_key is not None:
            assert credentials.secret_key is not None and credentials.server_key is not None
            self._dealer.curve_publickey = credentials.public_key.encode()
            self._dealer.curve_secretkey = credentials.secret_key.encode()
            self._dealer.curve_serverkey = credentials.server_key.encode()
        self._monitor: zmq.Socket[bytes] = self._dealer.get_monitor_socket(WATCHED)
        self._dealer.connect(endpoint)

    def send(self, frame: bytes) -> None:
        # Who was turned away by then has nobody to send it to.
        with suppress(zmq.Again):
            self._dealer.send(frame, zmq.NOBLOCK)

    def was_let_in(self) -> bool:
        """How its first attempt to connect ended."""
        assert self._monitor.poll(int(ANSWER_WITHIN_S * 1000)), "the handshake came to no end"
        event = recv_monitor_message(self._monitor)["event"]
        return bool(event == zmq.EVENT_HANDSHAKE_SUCCEEDED)

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether anything at all has come back by then."""
        return bool(self._dealer.poll(int(1000 * within_s)))

    def answer(self) -> Any:
        """What came back."""
        until_s = time.monotonic() + ANSWER_WITHIN_S
        assert self._dealer.poll(int((until_s - time.monotonic()) * 1000)), "no answer"
        return msgspec.msgpack.decode(decode_reply(self._dealer.recv()).body)

    def close(self) -> None:
        self._dealer.disable_monitor()
        self._monitor.close(0)
        self._dealer.close(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
