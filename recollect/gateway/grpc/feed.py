"""Following the change feed over one call: page after page, until either side ends it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from recollect.client.calling import backoff_s
from recollect.client.encoding import Speaker
from recollect.client.settings import Retry
from recollect.gateway.asking import Backend
from recollect.protocol.errors import ClientClosed, RecollectError, ShuttingDown
from recollect.protocol.operations import ReadChanges
from recollect.protocol.records import ChangesRead

PAGE_CHANGES = 500
ANSWERED_WITHIN_S = 10.0
WAIT_S = 15.0
"""How long one request waits at the orchestrator for the next change."""


class Following:
    """Reads the feed in the name of a caller, over restarts of the orchestrator."""

    def __init__(self, backend: Backend, *, outage_s_max: float, stopping: asyncio.Event) -> None:
        """`outage_s_max`: for how long it asks again before it gives up."""
        self._backend = backend
        self._outage_s_max = outage_s_max
        self._stopping = stopping
        self._retry = Retry()
        self._randomness = random.Random()

    async def pages(self, given: dict[str, Any], speaker: Speaker) -> AsyncIterator[ChangesRead]:
        """What has come, in order. The first page comes at once and may be empty; of the others
        only those that tell something new."""
        wanted = ReadChanges(limit=PAGE_CHANGES, **given)
        known: int | None = None
        while True:
            page = await self._ask(wanted, speaker)
            if page["next_seq"] != known:
                yield page
            known = page["next_seq"]
            wanted = msgspec.structs.replace(
                wanted, after_seq=known, wait_s=WAIT_S, timeout=WAIT_S + ANSWERED_WITHIN_S
            )

    async def _ask(self, wanted: ReadChanges, speaker: Speaker) -> ChangesRead:
        """The next page; raises what no retry can mend, or has not mended for too long."""
        clock = asyncio.get_running_loop().time
        given_up_s = clock() + WAIT_S + self._outage_s_max
        attempt = 0
        while True:
            try:
                return await self._unless_stopping(wanted, speaker)
            except RecollectError as error:
                attempt += 1
                pause_s = backoff_s(self._retry, attempt, self._randomness)
                asked_ms = error.details.get("retry_after_ms")
                if isinstance(asked_ms, int | float):
                    pause_s = max(pause_s, asked_ms / 1000)
                # Our own line is closed when the orchestrator has moved; there is a new one then.
                mendable = error.retryable or isinstance(error, ClientClosed)
                late = clock() + pause_s > given_up_s or self._stopping.is_set()
                if late or not mendable:
                    raise
            await asyncio.sleep(pause_s)

    async def _unless_stopping(self, wanted: ReadChanges, speaker: Speaker) -> ChangesRead:
        asking = asyncio.ensure_future(self._backend.ask(wanted, speaker))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise ShuttingDown("The gateway is shutting down: go on from next_seq elsewhere.")
        finally:
            asking.cancel()
            stopping.cancel()
