"""What waits for the writer, handed over many at a time.

The writer is woken when as many wait as it wants, and not by each of them: whoever is woken must
win the interpreter's lock from the event loop, which is at work on the next one. For the same
reason the loop wakes it when it is done with its turn: before, it would wake only to sleep again.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class WriteQueue(Generic[T]):
    """Filled by the event loop, emptied by one thread. Whoever fills it bounds its length."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`soon` runs what it is given once the turn of whoever fills the queue is over; without
        it that is done at once."""
        self._monotonic = monotonic
        self._soon = soon or (lambda wake: wake())
        self._items: deque[T] = deque()
        # How many must wait for the taker to be woken; 0 while it is awake. Set by the taker; set
        # back by whoever wakes it.
        self._wanted = 0
        # Held while nobody is to be woken: the taker sleeps by asking for it. Who wakes lets go of
        # it; if that came too late, the next sleep ends at once, looks again and goes on. Not a
        # SimpleQueue: one whose short time is over before it falls asleep may sleep for ever.
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        self._items.append(item)
        if 0 < self._wanted <= len(self._items):
            self._wanted = 0
            self._soon(self._wake)

    def close(self) -> None:
        """Nothing more comes: what waits is taken, and then the taker ends."""
        self._closed = True
        self._wake()

    def take(self, most: int, expected: int, wait_s: float) -> tuple[list[T], bool]:
        """What waits, in its order, as soon as something does; and whether more may come.

        Once something waits, `wait_s` more are spent on as many as are `expected`.
        """
        items = self._items
        self._await(1, None)
        if len(items) < (enough := min(expected, most)):
            self._await(enough, wait_s)
        taken = [items.popleft() for _ in range(min(most, len(items)))]
        return taken, bool(items) or not self._closed

    def _await(self, count: int, wait_s: float | None) -> None:
        """Sleep until so many wait, the time is over or nothing more comes."""
        items = self._items
        until_s = None if wait_s is None else self._monotonic() + wait_s
        while len(items) < count and not self._closed:
            self._wanted = count
            # What came before this was asked for has woken nobody.
            if len(items) < count and not self._closed:
                left_s = -1 if until_s is None else max(0.0, until_s - self._monotonic())
                if not self._asleep.acquire(timeout=left_s):
                    break
        self._wanted = 0

    def _wake(self) -> None:
        # It is free already where the taker was woken and has not noticed yet.
        with suppress(RuntimeError):
            self._asleep.release()
