"""A subscription of the asyncio client: an asynchronous iterator over the changes as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from recollect.client.following import Follower
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import ClientClosed, RecollectError
from recollect.protocol.records import FeedChange

T = TypeVar("T")
Request = Callable[[bytes, int, float], Coroutine[Any, Any, Reply]]


class AsyncSubscription(AsyncIterator[FeedChange]):
    """Changes in order, each once. One task iterates; any of the loop may close it."""

    def __init__(self, follower: Follower, request: Request) -> None:
        self._follower = follower
        self._request = request
        self._closed = False
        # What the task that iterates waits for: an answer, or the end of a pause.
        self._awaited: asyncio.Future[Any] | None = None

    @property
    def seq(self) -> int | None:
        """The last change that was given out, or passed by because it did not fit: give it to
        `subscribe(from_seq=…)` to go on from there. None before the beginning is known."""
        return self._follower.seq

    async def __anext__(self) -> FeedChange:
        while not self._closed:
            change = self._follower.take()
            if change is not None:
                return change
            await self._ask()
        raise StopAsyncIteration

    async def _ask(self) -> None:
        outcome: Reply | RecollectError
        try:
            answer = await self._interruptible(self._request(*self._follower.ask()))
            if answer is None:
                return
            outcome = answer
        except ClientClosed:
            self._closed = True
            return
        except RecollectError as error:
            outcome = error
        pause_s = self._follower.learn(outcome)
        if pause_s:
            await self._interruptible(asyncio.sleep(pause_s))

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What comes of it; None if the subscription was closed meanwhile."""
        awaited: asyncio.Task[T] = asyncio.ensure_future(work)
        self._awaited = awaited
        try:
            return await awaited
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            return None
        finally:
            awaited.cancel()
            self._awaited = None

    def end(self) -> None:
        """End it; whoever waits for a change waits no longer. Once is enough."""
        self._closed = True
        if self._awaited is not None:
            self._awaited.cancel()

    async def aclose(self) -> None:
        """The same as `end`, for those who close what they iterate over."""
        self.end()

    async def _begin(self) -> None:
        """Know where it begins: whatever is written from here on comes behind."""
        while self._follower.seq is None and not self._closed:
            await self._ask()

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
