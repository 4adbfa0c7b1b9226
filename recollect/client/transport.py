"""The blocking transport: a request goes out, its reply comes back.

Any number of threads may call. Each takes a line from the pool for as long as its request lasts, so
that no lock is held while it waits and no thread of ours stands in between. The line used last is
taken first: few threads keep few lines busy.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import zmq

from recollect.client import forking, sockets
from recollect.client.keys import Keys
from recollect.client.line import Line
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RequestTimeout


class Requests(Protocol):
    """A transport: one essential method, and an end."""

    def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame and return the reply with this id."""
        ...

    def close(self) -> None:
        """Close it; a request under way ends with ClientClosed."""
        ...


class Transport:
    """A bounded pool of lines to one endpoint."""

    def __init__(
        self,
        endpoint: str,
        *,
        keys: Keys | None = None,
        connect_s: float = 1.0,
        connections_max: int = 64,
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
        self._connections_max = connections_max
        self._clock = clock
        self._closed = False
        self._start()
        forking.register(self)

    def _start(self) -> None:
        # Taking from and adding to a deque is atomic, so an idle line costs no lock.
        self._idle: deque[Line] = deque()
        # Guards the two counts, and is notified when a line or the room for one becomes free.
        self._freed = threading.Condition()
        self._open_count = 0
        self._waiting_count = 0

    def after_fork(self) -> None:
        forking.keep_unclosed(self._idle)
        self._start()

    def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame and return the reply with this id."""
        deadline_s = self._clock() + timeout_s
        line = self._take(deadline_s)
        try:
            reply = line.exchange(frame, request_id, deadline_s, self._connect_s, self._is_closed)
        except zmq.ZMQError as error:
            self._drop(line)
            raise sockets.translated(error, self._endpoint) from error
        except BaseException:
            # A reply may still come on this line, and must not be taken for another's.
            self._drop(line)
            raise
        self._idle.append(line)
        if self._waiting_count or self._closed:
            self._hand_on()
        return reply

    def _is_closed(self) -> bool:
        return self._closed

    def _take(self, deadline_s: float) -> Line:
        if self._closed:
            raise sockets.closed()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        with self._freed:
            # A thread that gives back a line looks at this count after it has given it back, and
            # we look for a line after we have counted ourselves: one of us sees the other.
            self._waiting_count += 1
            try:
                while True:
                    if self._closed:
                        raise sockets.closed()
                    if self._idle:
                        try:
                            return self._idle.pop()
                        except IndexError:
                            continue
                    if self._open_count < self._connections_max:
                        self._open_count += 1
                        break
                    if not self._freed.wait(deadline_s - self._clock()):
                        raise RequestTimeout(
                            f"All {self._connections_max} connections were busy until the "
                            "deadline (connections_max).",
                            limit="connections_max",
                        )
            finally:
                self._waiting_count -= 1
        try:
            return Line(self._endpoint, self._clock, self._keys, self._is_spared)
        except BaseException:
            self._forget_one()
            raise

    def _hand_on(self) -> None:
        with self._freed:
            self._freed.notify()
        if self._closed:
            self._close_idle()

    def _drop(self, line: Line) -> None:
        line.close()
        self._forget_one()

    def _forget_one(self) -> None:
        with self._freed:
            self._open_count -= 1
            self._freed.notify()

    def _close_idle(self) -> None:
        while self._idle:
            try:
                self._drop(self._idle.pop())
            except IndexError:
                return

    def close(self) -> None:
        """Close all lines; a request under way ends with ClientClosed. Once is enough."""
        self._closed = True
        with self._freed:
            self._freed.notify_all()
        self._close_idle()
