"""What an adapter does, as a generator of operations: written once, for threads and for asyncio.

A generator yields the next operation and is sent its answer, or has its error raised where it
yielded; it returns what came of it all.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import RecollectError
from recollect.protocol.operation import Operation

R = TypeVar("R")

# An answer has the shape that its operation promises, and a generator yields several kinds.
Steps: TypeAlias = Generator[Operation[Any], Any, R]


def follow(client: MemoryClient, steps: Steps[R]) -> R:
    """Carry out the operations one after another and return what came of them."""
    try:
        operation = next(steps)
        while True:
            try:
                answer = client.call(operation)
            except RecollectError as error:
                operation = steps.throw(error)
            else:
                operation = steps.send(answer)
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        steps.close()


async def afollow(client: AsyncMemoryClient, steps: Steps[R]) -> R:
    """The same for asyncio."""
    try:
        operation = next(steps)
        while True:
            try:
                answer = await client.call(operation)
            except RecollectError as error:
                operation = steps.throw(error)
            else:
                operation = steps.send(answer)
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        steps.close()
