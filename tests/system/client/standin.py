"""A small server that speaks the protocol, for tests of the transport: a ROUTER in a thread.

A script says what it does with each request. It is written with plain pyzmq and the envelope alone,
so that it can also do what no orchestrator does: lose a reply, answer late, send garbage.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import zmq

from recollect.protocol.envelope import PROTOCOL_VERSION, Reply, Request, decode_request
from recollect.protocol.errors import RecollectError
from tests.harness.ports import free_port

WAIT_S = 20.0


class Seen(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    peer: bytes
    request: Request

    @property
    def body(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.msgpack.decode(self.request.body)
        return fields


Script = Callable[["StandIn", Seen], None]


def echo(server: StandIn, seen: Seen) -> None:
    """Answer with what was asked."""
    server.answer(seen, {"status": "success", "op": seen.request.op, "fields": seen.body})


def silence(server: StandIn, seen: Seen) -> None:
    """Never answer."""


class StandIn:
    """Answers on loopback until it is stopped; may be started again on the same port."""

    def __init__(
        self, script: Script = echo, port: int | None = None, host: str = "127.0.0.1"
    ) -> None:
        self.script = script
        self.port = port or free_port()
        self.endpoint = f"tcp://{host}:{self.port}"
        self.seen: list[Seen] = []
        self.clock_offset_ms = 0
        self._arrived = threading.Condition()
        self._errors: list[BaseException] = []
        self.start()

    def start(self) -> None:
        self._context = zmq.Context()
        self._router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._bind()
        self._stopping = self._context.socket(zmq.PAIR)
        address = f"inproc://stop-{id(self)}"
        self._stopping.bind(address)
        self._thread = threading.Thread(target=self._serve, args=(address,), daemon=True)
        self._thread.start()

    def _bind(self) -> None:
        give_up_at_s = time.monotonic() + WAIT_S
        while True:
            try:
                self._router.bind(self.endpoint)
                return
            except zmq.ZMQError:
                if time.monotonic() > give_up_at_s:
                    raise
                threading.Event().wait(0.02)

    def _serve(self, address: str) -> None:
        stop = self._context.socket(zmq.PAIR)
        stop.connect(address)
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(stop, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if stop in ready:
                break
            peer, frame = self._router.recv_multipart()
            seen = Seen(peer, decode_request(frame))
            with self._arrived:
                self.seen.append(seen)
                self._arrived.notify_all()
            try:
                self.script(self, seen)
            except BaseException as error:
                self._errors.append(error)
        stop.close(0)
        self._router.close(0)

    def answer(self, seen: Seen, body: dict[str, Any]) -> None:
        """Reply to a request; call it from a script only."""
        now_ms = int(time.time() * 1000) + self.clock_offset_ms
        reply = Reply(
            v=PROTOCOL_VERSION,
            id=seen.request.id,
            now_ms=now_ms,
            body=msgspec.msgpack.encode(body),
        )
        self.send_raw(seen, msgspec.msgpack.encode(reply))

    def refuse(self, seen: Seen, error: RecollectError) -> None:
        """Reply with an error."""
        self.answer(seen, dict(error.reply()))

    def send_raw(self, seen: Seen, frame: bytes) -> None:
        """Send any bytes to whoever made a request."""
        self._router.send_multipart([seen.peer, frame])

    def wait_for(self, count: int) -> list[Seen]:
        """The requests so far, once there are so many."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.seen) >= count, WAIT_S), (
                f"{len(self.seen)} of {count} requests arrived"
            )
            return list(self.seen)

    def stop(self) -> None:
        """Go away at once, as if killed: no reply that is not sent yet will be."""
        if self._thread.is_alive():
            self._stopping.send(b"")
            self._thread.join(WAIT_S)
            assert not self._thread.is_alive()
        self._stopping.close(0)
        self._context.term()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._context.closed:
            self.stop()
        assert not self._errors, self._errors
