"""Where the pages get what they show: operations of the orchestrator, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from recollect.protocol.errors import RecollectError, Unreachable
from recollect.protocol.operation import Operation

R = TypeVar("R")
ASKED_WITHIN_S = 4.0
AT_ONCE_MAX = 8


class Line(Protocol):
    """The way to the orchestrator: a client, or what finds one anew when it has moved."""

    async def call(self, operation: Operation[R], /) -> R: ...


class Source:
    """Asks the orchestrator, and never for longer than somebody would wait for a page."""

    def __init__(self, line: Line, why_down: Callable[[], str | None]) -> None:
        """`why_down` says why the orchestrator is known to be down; None if it is not."""
        self._line = line
        self._why_down = why_down

    async def ask(
        self, operation: Operation[R], within_s: float = ASKED_WITHIN_S
    ) -> R | RecollectError:
        """The answer, or why there is none: a page shows either."""
        # Nobody waits for an answer of which it is known that it will not come.
        if (why := self._why_down()) is not None:
            return Unreachable(why)
        try:
            async with asyncio.timeout(within_s + 1):
                return await self._line.call(_timed(operation, within_s))
        except TimeoutError:
            return RecollectError("The orchestrator did not answer in time.")
        except RecollectError as error:
            return error

    async def ask_all(
        self, operations: Sequence[Operation[R]], within_s: float = ASKED_WITHIN_S
    ) -> list[R | RecollectError]:
        """The answers to several questions, a few at a time, in their order."""
        few = asyncio.Semaphore(AT_ONCE_MAX)

        async def one(operation: Operation[R]) -> R | RecollectError:
            async with few:
                return await self.ask(operation, within_s)

        return list(await asyncio.gather(*(one(operation) for operation in operations)))


def _timed(operation: Operation[R], within_s: float) -> Operation[R]:
    return msgspec.structs.replace(operation, timeout=within_s)
