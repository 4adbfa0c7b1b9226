"""One connection of a blocking client, used by one thread at a time."""

from __future__ import annotations

from collections.abc import Callable

import zmq

from recollect.client import sockets
from recollect.client.keys import Keys
from recollect.protocol.envelope import Reply

# A reply wakes its waiter at once. Between replies the waiter looks this often whether the
# connection broke or the client was closed: polling a second socket on every call costs more.
NOBLOCK = int(zmq.NOBLOCK)
SLICE_MS = 20
# A line that rested so long may have been disconnected and connected again meanwhile.
RESTED_S = 0.005


class Line:
    """A DEALER socket with its monitor. Whoever gets an error from it closes it and drops it."""

    def __init__(
        self,
        endpoint: str,
        clock: Callable[[], float],
        keys: Keys | None = None,
        is_spared: Callable[[], bool] | None = None,
    ) -> None:
        """`is_spared`: whether another can be asked instead, so that nobody need wait until a lost
        connection is back."""
        self._endpoint = endpoint
        self._is_spared = is_spared
        self._clock = clock
        self._keys = keys
        self._open()
        self._opened_at_s = self._used_at_s = clock()

    def _open(self) -> None:
        self._dealer, self._monitor = sockets.open_dealer(self._endpoint, self._keys)
        self._dealer.rcvtimeo = SLICE_MS
        # The send of pyzmq's core, without the checks of options that are never used here.
        self._send = super(zmq.Socket, self._dealer).send
        self._receive = self._dealer.recv

    def exchange(
        self,
        frame: bytes,
        request_id: int,
        deadline_s: float,
        connect_s: float,
        is_closed: Callable[[], bool],
    ) -> Reply:
        """Send a request and wait for its reply."""
        now_s = self._clock()
        if now_s - self._used_at_s > RESTED_S:
            heard = sockets.hear(self._monitor)
            if heard.turned_away or heard.unlike:
                # That was while it rested, and meanwhile it may be otherwise.
                self.close()
                self._open()
        connected = True
        try:
            self._send(frame, NOBLOCK)
        except zmq.Again:
            connected = False
        if not connected:
            was_connected = self._used_at_s != self._opened_at_s
            if was_connected and self._is_spared is not None and self._is_spared():
                raise sockets.unreachable(self._endpoint)
            self._await_connection(min(deadline_s, now_s + connect_s), is_closed)
            sockets.hear(self._monitor)
            self._dealer.send(frame, zmq.NOBLOCK)
            now_s = self._clock()
        reply = self._await_reply(request_id, deadline_s, now_s, is_closed)
        self._used_at_s = self._clock()
        return reply

    def _await_connection(self, until_s: float, is_closed: Callable[[], bool]) -> None:
        broken_off = 0
        while not self._dealer.poll(SLICE_MS, zmq.POLLOUT):
            if is_closed():
                raise sockets.closed()
            heard = sockets.hear(self._monitor)
            broken_off += heard.broken_off
            if denied := sockets.denied(heard, self._endpoint, self._keys):
                raise denied
            if self._clock() >= until_s:
                raise sockets.unreachable(self._endpoint, broken_off, self._keys)

    def _await_reply(
        self, request_id: int, deadline_s: float, now_s: float, is_closed: Callable[[], bool]
    ) -> Reply:
        lost = shortened = False
        while True:
            left_ms = int((deadline_s - now_s) * 1000)
            if left_ms < SLICE_MS:
                if left_ms <= 0:
                    raise sockets.no_answer(self._endpoint)
                self._dealer.rcvtimeo = left_ms
                shortened = True
            try:
                frame = self._receive(NOBLOCK if lost else 0)
            except zmq.Again:
                now_s = self._clock()
                if is_closed():
                    raise sockets.closed() from None
                if lost:
                    raise sockets.connection_lost(self._endpoint) from None
                # The reply may have come just before the connection broke: look once more.
                lost = sockets.hear(self._monitor).lost
                continue
            reply = sockets.read_reply(frame, self._endpoint)
            # A reply without an id answers a request too broken to have one: the only one here.
            if reply.id == request_id or reply.id is None:
                if shortened:
                    self._dealer.rcvtimeo = SLICE_MS
                return reply
            now_s = self._clock()

    def close(self) -> None:
        sockets.close_dealer(self._dealer)
