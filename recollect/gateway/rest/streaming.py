"""The change feed as server-sent events: as long as the reader stays, and not faster than it reads.

It is made of `read_changes`, asked again and again in the name of the reader. So a reader who may
no longer see something does not, from the next page on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from typing import Any

import msgspec
from starlette.types import Receive, Send

from recollect.client.encoding import Speaker
from recollect.gateway.asking import Backend
from recollect.gateway.rest.answers import SAFE
from recollect.gateway.rest.problems import Header
from recollect.gateway.shares import Shares
from recollect.protocol.errors import ClientClosed, RecollectError
from recollect.protocol.operations import ReadChanges
from recollect.protocol.records import ChangesRead, FeedChange

CONTENT_TYPE = b"text/event-stream"
PAGE_CHANGES = 100
HEARTBEAT_S = 15.0
ANSWERED_WITHIN_S = 10.0
# A reader who takes nothing for so long is not there any more.
SLOW_S_MAX = 30.0
PAUSE_S = 0.5
PAUSE_S_MAX = 5.0
RECONNECT_MS = 2_000

encode = msgspec.json.Encoder().encode


def is_wanted(accepted: bytes | None) -> bool:
    """Whether `Accept` asks for a stream of events."""
    return accepted is not None and CONTENT_TYPE in accepted


class ChangeStreams:
    """All readers of the feed. Lives on the event loop."""

    def __init__(self, backend: Backend, streams_max: int, share_max: float) -> None:
        self._backend = backend
        self._open = Shares(
            streams_max, share_max, what="readers of the changes", limit="gateway.streams_max"
        )
        self._closing = asyncio.Event()
        self._randomness = random.Random()

    def close(self) -> None:
        """End all of them; their readers come back to whoever serves then."""
        self._closing.set()

    async def serve(
        self,
        reader: str,
        wanted: ReadChanges,
        speaker: Speaker,
        receive: Receive,
        send: Send,
        headers: Iterable[Header],
    ) -> None:
        """Stream to one reader until either goes; raises RecollectError before it has begun."""
        self._open.take(reader)
        leaving = asyncio.create_task(self._until_over(receive))
        try:
            wanted = msgspec.structs.replace(wanted, limit=PAGE_CHANGES, wait_s=0.0)
            first = await self._backend.ask(wanted, speaker)
            start = [(b"content-type", CONTENT_TYPE), *SAFE, *headers]
            await send({"type": "http.response.start", "status": 200, "headers": start})
            await _write(send, b"retry: %d\n\n" % RECONNECT_MS + _page(first))
            await self._go_on(wanted, first["next_seq"], speaker, send, leaving)
        except TimeoutError:
            pass  # It has stopped reading: the server ends the connection.
        finally:
            leaving.cancel()
            self._open.leave(reader)

    async def _go_on(
        self,
        wanted: ReadChanges,
        seq: int,
        speaker: Speaker,
        send: Send,
        leaving: asyncio.Task[None],
    ) -> None:
        failed = 0
        while not leaving.done():
            asked = msgspec.structs.replace(
                wanted,
                after_seq=seq,
                wait_s=HEARTBEAT_S,
                timeout=HEARTBEAT_S + ANSWERED_WITHIN_S,
            )
            try:
                page = await _unless(leaving, self._backend.ask(asked, speaker))
            except RecollectError as error:
                if not (error.retryable or isinstance(error, ClientClosed)):
                    await _write(send, b"event: error\ndata: %b\n\n" % encode(error.body()))
                    break
                failed += 1
                await _write(send, b": %b\n\n" % error.code.encode())
                await _unless(leaving, asyncio.sleep(self._pause_s(failed)))
                continue
            if page is None:
                break
            failed = 0
            seq = page["next_seq"]
            await _write(send, _page(page))
        await _write(send, b"", more=False)

    async def _until_over(self, receive: Receive) -> None:
        """Return when the reader has gone, or all streams are to end."""
        gone = asyncio.create_task(_until_gone(receive))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({gone, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            closing.cancel()

    def _pause_s(self, failed: int) -> float:
        whole_s: float = min(PAUSE_S_MAX, PAUSE_S * 2 ** min(failed - 1, 10))
        return whole_s * self._randomness.uniform(0.5, 1.0)


def _page(page: ChangesRead) -> bytes:
    """A page of changes as events. An id alone moves a reader on over what it does not see, and
    tells it that we are there."""
    events = [_event(change) for change in page["changes"]]
    events.append(b": alive\nid: %d\n\n" % page["next_seq"])
    return b"".join(events)


def _event(change: FeedChange) -> bytes:
    return b"id: %d\nevent: change\ndata: %b\n\n" % (change["seq"], encode(change))


async def _write(send: Send, body: bytes, *, more: bool = True) -> None:
    """Write to the reader, who may be slow but not for ever; raises TimeoutError."""
    async with asyncio.timeout(SLOW_S_MAX):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless(leaving: asyncio.Task[None], work: Awaitable[Any]) -> Any:
    """What comes of some work; None if the reader goes before."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
