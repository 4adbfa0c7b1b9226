"""One timer for all requests that wait."""

from __future__ import annotations

import asyncio
import time

from recollect.client.deadlines import Deadlines

WAIT_S = 10.0
FAR_S = 3600.0


class Expired:
    """The ids that were told, in order."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._told = asyncio.Event()

    def __call__(self, request_id: int) -> None:
        self.ids.append(request_id)
        self._told.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while len(self.ids) < count:
                await self._told.wait()
                self._told.clear()


def test_each_expires_in_its_turn_however_late_it_came() -> None:
    async def run() -> None:
        expired = Expired()
        deadlines = Deadlines(time.monotonic, expired)
        now_s = time.monotonic()
        deadlines.add(1, now_s + FAR_S)
        deadlines.add(2, now_s + 0.04)
        deadlines.add(3, now_s + 0.02)
        # Its time is up already.
        deadlines.add(4, now_s - 1.0)
        await expired.until(3)
        assert expired.ids == [4, 3, 2]
        deadlines.close()

    asyncio.run(run())


def test_what_was_answered_does_not_expire_and_the_next_still_does() -> None:
    async def run() -> None:
        expired = Expired()
        deadlines = Deadlines(time.monotonic, expired)
        now_s = time.monotonic()
        deadlines.add(1, now_s + 0.01)
        deadlines.add(2, now_s + 0.03)
        deadlines.drop(1)
        deadlines.drop(7)
        await expired.until(1)
        assert expired.ids == [2]
        deadlines.add(3, time.monotonic() + 0.01)
        await expired.until(2)
        assert expired.ids == [2, 3]

    asyncio.run(run())


def test_nothing_expires_after_the_end() -> None:
    async def run() -> None:
        expired = Expired()
        deadlines = Deadlines(time.monotonic, expired)
        deadlines.add(1, time.monotonic() + 0.01)
        deadlines.close()
        other = Deadlines(time.monotonic, expired)
        other.add(2, time.monotonic() + 0.03)
        await expired.until(1)
        assert expired.ids == [2]

    asyncio.run(run())
