"""A subscription of the blocking client: an iterator over the changes as they come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from recollect.client.following import Follower
from recollect.client.transport import Requests
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import ClientClosed, RecollectError
from recollect.protocol.records import FeedChange


class Subscription(Iterator[FeedChange]):
    """Changes in order, each once. One thread iterates; any may close it, which ends it.

    It has a connection of its own, so that no other call of the client waits for it.
    """

    def __init__(self, follower: Follower, transport: Requests) -> None:
        self._follower = follower
        self._transport = transport
        self._closing = threading.Event()

    @property
    def seq(self) -> int:
        """The last change that was given out, or passed by because it did not fit: give it to
        `subscribe(from_seq=…)` to go on from there."""
        assert self._follower.seq is not None, "the beginning is known from the first moment"
        return self._follower.seq

    def __next__(self) -> FeedChange:
        while not self._closing.is_set():
            change = self._follower.take()
            if change is not None:
                return change
            outcome: Reply | RecollectError
            try:
                outcome = self._transport.request(*self._follower.ask())
            except ClientClosed:
                break
            except RecollectError as error:
                outcome = error
            pause_s = self._follower.learn(outcome)
            if pause_s:
                self._closing.wait(pause_s)
        raise StopIteration

    def close(self) -> None:
        """End it; whoever waits for a change waits no longer. Once is enough."""
        self._closing.set()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
