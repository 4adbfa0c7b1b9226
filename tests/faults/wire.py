"""The protocol spoken by hand: plain pyzmq, any bytes, any number of requests under way."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import msgspec
import zmq

from recollect.protocol.envelope import PROTOCOL_VERSION, decode_reply

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


def request(
    request_id: int | str, op: str, body: dict[str, Any] | bytes = b"\x80", **envelope: Any
) -> bytes:
    """A request as one frame."""
    packed = body if isinstance(body, bytes) else encode(body)
    return encode({"v": PROTOCOL_VERSION, "id": request_id, "op": op, "body": packed, **envelope})


def in_ms(seconds: float) -> int:
    """A deadline so many seconds from now."""
    return int((time.time() + seconds) * 1000)


def code_of(answer: dict[str, Any]) -> str:
    """`success` or `partial`, or the code of the error."""
    if answer["status"] == "error":
        return str(answer["error"]["code"])
    return str(answer["status"])


class Wire:
    """One DEALER socket."""

    def __init__(self, endpoint: str) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.linger = 0
        self._dealer.sndhwm = self._dealer.rcvhwm = 0
        self._dealer.connect(endpoint)

    def send(self, *frames: bytes) -> None:
        self._dealer.send_multipart(list(frames))

    def receive(self, within_s: float = 10.0) -> tuple[int | str | None, dict[str, Any]]:
        """The next reply: the id it answers, and the answer."""
        assert self._dealer.poll(int(within_s * 1000)), f"no reply within {within_s} s"
        frames = self._dealer.recv_multipart()
        reply = decode_reply(frames[-1])
        return reply.id, decode(reply.body)

    def waiting(self, within_s: float) -> bool:
        """Whether a reply comes in time."""
        return bool(self._dealer.poll(int(within_s * 1000)))

    def ask(self, op: str, body: dict[str, Any] | bytes = b"\x80", **envelope: Any) -> Any:
        """One request and its answer."""
        self.send(request(1, op, body, **envelope))
        return self.receive()[1]

    def close(self) -> None:
        self._dealer.close(0)
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
