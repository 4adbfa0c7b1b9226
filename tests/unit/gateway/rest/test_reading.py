"""How much of the bodies of all is taken in at once."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from recollect.gateway.rest.problems import Refusal
from recollect.gateway.rest.reading import LARGEST_AT_ONCE, SMALL_BYTES, Bodies, CallerGone

BYTES_MAX = 4 * SMALL_BYTES


class Sender:
    """Sends a body in parts; what comes last, when it is told to."""

    def __init__(self, size: int) -> None:
        self._parts = [bytes(SMALL_BYTES)] * (size // SMALL_BYTES)
        self.last: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    async def __call__(self) -> Message:
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(), "more_body": True}
        return await self.last

    def end(self) -> None:
        self.last.set_result({"type": "http.request", "body": b"", "more_body": False})

    def go(self) -> None:
        self.last.set_result({"type": "http.disconnect"})


def test_large_bodies_on_their_way_are_bounded_and_small_ones_are_read_beside_them() -> None:
    async def main() -> None:
        bodies = Bodies(BYTES_MAX, 30.0)
        # Of each all but the small beginning is counted.
        fitting = LARGEST_AT_ONCE * BYTES_MAX // (BYTES_MAX - SMALL_BYTES)
        senders = [Sender(BYTES_MAX) for _ in range(fitting)]
        reading = [asyncio.create_task(bodies.read({}, sender)) for sender in senders]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await bodies.read({}, Sender(BYTES_MAX))
        assert refused.value.status == 503
        small = Sender(SMALL_BYTES)
        small.end()
        assert len(await bodies.read({}, small)) == SMALL_BYTES

        # What was read, or given up, makes room again.
        senders[0].end()
        senders[1].go()
        assert len(await reading[0]) == BYTES_MAX
        with pytest.raises(CallerGone):
            await reading[1]
        for sender in (Sender(BYTES_MAX), Sender(BYTES_MAX)):
            sender.end()
            assert len(await bodies.read({}, sender)) == BYTES_MAX
        for task in reading[2:]:
            task.cancel()
        await asyncio.wait(reading[2:])

    asyncio.run(main())
