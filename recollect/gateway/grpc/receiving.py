"""The message of a call with one: bounded in time, and in how many one caller may owe.

gRPC itself would wait for it without end before it asks a handler, and the call would hold a place
meanwhile. So to gRPC these calls take a stream of messages, which on the wire is the same, and the
one message is read here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio

from recollect.gateway.grpc.calls import Context, refuse
from recollect.gateway.shares import Shares, address_of_peer, network_of
from recollect.protocol.errors import (
    DeadlineExceeded,
    MalformedRequest,
    Overloaded,
    RecollectError,
)

R = TypeVar("R")
Handler = Callable[[Any, Any], Awaitable[R]]

GRACE_S = 1.0
"""Mostly the message comes with the call: only what takes longer is counted."""


class Receiving:
    """Reads messages before handlers are asked. Lives on the event loop."""

    def __init__(self, owing: Shares, within_s: float) -> None:
        """`owing` counts the calls whose message is long in coming."""
        self._owing = owing
        self._within_s = within_s

    def before(self, handler: Handler[R]) -> Handler[R]:
        """A handler that is asked when the message is there."""

        async def receive(_: Any, context: Context) -> R:
            return await handler(await self._message(context), context)

        return receive

    async def _message(self, context: Context) -> Any:
        slow = _Slow(self._owing, self._within_s, context)
        try:
            message: Any = await context.read()
        except asyncio.CancelledError:
            if slow.why is None or slow.reading.uncancel():
                raise
            await refuse(context, slow.why)
        finally:
            slow.end()
        if message is grpc.aio.EOF:
            await refuse(context, MalformedRequest("The call ended without its message."))
        return message


class _Slow:
    """The message of a call that is waited for: counted once that takes long, and given up in the
    end. As `asyncio.timeout` would do it, without its costs for those that come at once."""

    def __init__(self, owing: Shares, within_s: float, context: Context) -> None:
        self._owing = owing
        self._within_s = within_s
        self._context = context
        self._caller: str | None = None
        self._loop = asyncio.get_running_loop()
        reading = asyncio.current_task()
        assert reading is not None
        self.reading = reading
        self.why: RecollectError | None = None
        """Why nobody waits any more."""
        self._timer = self._loop.call_later(min(GRACE_S, within_s), self._owe)

    def _owe(self) -> None:
        caller = network_of(address_of_peer(self._context.peer()))
        try:
            self._owing.take(caller)
        except Overloaded as error:
            self._give_up(error)
            return
        self._caller = caller
        left_s = self._within_s - min(GRACE_S, self._within_s)
        why = f"The message of the call did not come within {self._within_s:g} seconds."
        late = DeadlineExceeded(why, limit="gateway.read_s")
        self._timer = self._loop.call_later(left_s, self._give_up, late)

    def _give_up(self, why: RecollectError) -> None:
        self.why = why
        self.reading.cancel()

    def end(self) -> None:
        self._timer.cancel()
        if self._caller is not None:
            self._owing.leave(self._caller)
            self._caller = None
