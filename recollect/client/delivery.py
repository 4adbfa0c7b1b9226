"""Delivers what waits in the outbox: in order, each write once, by one process at a time.

A thread runs while there is something to deliver and ends when there is nothing. It has a
connection of its own, so that it takes none from the callers.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from recollect.client import forking
from recollect.client.calling import Notice, pause_after_s, read_answer
from recollect.client.encoding import Call, Speaker, frame_of
from recollect.client.outbox import Item, OutboxFile, OutboxStatus, Queued
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.client.transport import Requests
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import (
    RecollectError,
    RequestTimeout,
    StorageFailed,
    Unauthenticated,
    UnknownOperation,
)
from recollect.protocol.operations import REGISTRY

DELIVERY_TIMEOUT_S = 10.0
FOREIGN_PAUSE_S = 0.1
JOIN_S = 5.0


class Outbox:
    """The outbox of one client: its file, and the thread that empties it."""

    def __init__(
        self,
        file: OutboxFile,
        *,
        bearer: str | None,
        make_transport: Callable[[], Requests],
        retry: Retry,
        server_clock: ServerClock,
        clock: Callable[[], float],
        randomness: random.Random,
        notice: Notice,
    ) -> None:
        self._file = file
        # A secret, and so not in the file: what waits there is delivered with the client's own.
        self._bearer = bearer
        self._make_transport = make_transport
        self._retry = retry
        self._server_clock = server_clock
        self._clock = clock
        self._randomness = randomness
        self._notice = notice
        self._ids = itertools.count(1)
        self._start()
        forking.register(self)

    def _start(self) -> None:
        # Guards the thread's existence, and is notified when an item left the file.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._transport: Requests | None = None
        self._stopping = threading.Event()
        self._lock_fd: int | None = None
        self._last_error: RecollectError | None = None

    def after_fork(self) -> None:
        if self._lock_fd is not None:
            # The parent's descriptor keeps the lock; this is only our copy of it.
            os.close(self._lock_fd)
        self._start()

    def put(self, call: Call, speaker: Speaker) -> Queued:
        """Keep a write, and see to its delivery."""
        queued = self._file.put(call, speaker)
        self.wake()
        assert call.key is not None
        return {"status": "queued", "idempotency_key": call.key, "queued": queued}

    def is_empty(self) -> bool:
        """Whether a new write may go past the outbox without overtaking another."""
        return self._file.head() is None

    def status(self) -> OutboxStatus:
        queued, refused = self._file.counts()
        last_error = str(self._last_error) if self._last_error is not None else None
        return {
            "status": "success",
            "queued": queued,
            "refused": refused,
            "last_error": last_error,
        }

    def flush(self, timeout_s: float) -> OutboxStatus:
        """Wait until nothing waits in the outbox any more."""
        deadline_s = self._clock() + timeout_s
        with self._changed:
            while not self.is_empty():
                self.wake()
                left_s = deadline_s - self._clock()
                if left_s <= 0 or self._stopping.is_set():
                    status = self.status()
                    raise RequestTimeout(
                        f"{status['queued']:,} writes still wait in the outbox: "
                        f"{status['last_error']}.",
                        **{name: status[name] for name in ("queued", "refused", "last_error")},
                    )
                # Another process may be the one that delivers, and does not notify us.
                self._changed.wait(min(left_s, FOREIGN_PAUSE_S))
        return self.status()

    def wake(self) -> None:
        """Start delivering, unless that is under way."""
        with self._changed:
            if self._thread is None and not self._stopping.is_set():
                thread = threading.Thread(
                    target=self._deliver_all, name="recollect-outbox", daemon=True
                )
                # There may be no room for another thread: what waits is safe, and whoever comes
                # next tries again.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def close(self) -> None:
        """Stop delivering; what waits stays in the file. Once is enough."""
        self._stopping.set()
        with self._changed:
            thread, transport = self._thread, self._transport
        if transport is not None:
            transport.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_S)
        self._file.close()

    def _deliver_all(self) -> None:
        attempt = 0
        try:
            while not self._stopping.is_set():
                try:
                    pause_s = self._deliver_next()
                    attempt = 0
                except RecollectError as error:
                    self._last_error = error
                    attempt += 1
                    pause_s = pause_after_s(error, attempt, self._retry, self._randomness)
                if pause_s is None:
                    return
                if pause_s:
                    self._stopping.wait(pause_s)
        finally:
            with self._changed:
                if self._thread is threading.current_thread():
                    self._finish()

    def _deliver_next(self) -> float | None:
        """Deliver the head; returns the pause before the next, or None when there is none."""
        with self._changed:
            # Whoever adds an item asks for a thread afterwards, under the same lock.
            item = self._file.head()
            if item is None:
                self._finish()
                return None
        if not self._locked():
            return FOREIGN_PAUSE_S
        # Only under the lock is the head certain to be still undelivered.
        item = self._file.head()
        if item is not None:
            self._deliver(item)
            with self._changed:
                self._changed.notify_all()
        return 0.0

    def _deliver(self, item: Item) -> None:
        operation = REGISTRY.get(item.operation)
        if operation is None:
            unknown = UnknownOperation(f"No operation is called {item.operation}.")
            self._refuse(item, unknown)
            return
        call = Call(operation.spec, item.body, item.key, DELIVERY_TIMEOUT_S)
        error = self._exchange(call, item)
        if error is None:
            self._file.remove(item)
            self._last_error = None
        elif error.retryable or isinstance(error, Unauthenticated):
            # Whoever is not let in was not heard: the write waits for a key that is known.
            raise error
        elif not self._stopping.is_set():
            self._refuse(item, error)

    def _exchange(self, call: Call, item: Item) -> RecollectError | None:
        if self._transport is None:
            self._transport = self._make_transport()
        request_id = next(self._ids)
        deadline_ms = self._server_clock.deadline_ms(self._clock() + DELIVERY_TIMEOUT_S)
        speaker = replace(item.speaker, bearer=self._bearer)
        frame = frame_of(call, request_id, deadline_ms, speaker)
        try:
            reply: Reply = self._transport.request(frame, request_id, DELIVERY_TIMEOUT_S)
        except RecollectError as error:
            return error
        self._server_clock.learn(reply.now_ms, self._clock())
        answer = read_answer(reply)
        return answer if isinstance(answer, RecollectError) else None

    def _refuse(self, item: Item, error: RecollectError) -> None:
        self._file.refuse(item, error)
        self._last_error = error
        self._notice(item.operation, error)

    def _locked(self) -> bool:
        """Whether this client is the one that delivers, among all that share the file."""
        import fcntl

        if self._lock_fd is not None:
            return True
        path = f"{self._file.path}.lock"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(f"The outbox cannot be locked by {path}: {error}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._lock_fd = fd
        return True

    def _finish(self) -> None:
        """Release what the thread held, and let another one begin. Call it under the lock."""
        if self._transport is not None:
            self._transport.close()
        if self._lock_fd is not None:
            os.close(self._lock_fd)
        self._thread = self._transport = self._lock_fd = None
        self._changed.notify_all()
