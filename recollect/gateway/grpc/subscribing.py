"""The one call whose answer is a stream: `Subscribe`."""

from __future__ import annotations

import asyncio
from typing import Any

from recollect.gateway.admission import Admission
from recollect.gateway.asking import Backend
from recollect.gateway.callers import Doorman
from recollect.gateway.grpc.answering import Writer
from recollect.gateway.grpc.calls import NOBODY, Context, defect, refuse
from recollect.gateway.grpc.declared import FROM_SEQ, SUBSCRIBE
from recollect.gateway.grpc.descriptors import Messages
from recollect.gateway.grpc.feed import Following
from recollect.gateway.grpc.metadata import said_in
from recollect.gateway.grpc.reading import Reader
from recollect.gateway.shares import Shares, address_of_peer, caller_of
from recollect.protocol.errors import RecollectError


class Subscribing:
    """Serves the readers of the feed, up to a number at once. Lives on the event loop."""

    def __init__(
        self,
        backend: Backend,
        following: Following,
        doorman: Doorman,
        admission: Admission,
        messages: Messages,
        *,
        streams: Shares,
    ) -> None:
        shapes = {shape.name: shape for shape in messages.file.messages}
        self._backend = backend
        self._following = following
        self._doorman = doorman
        self._admission = admission
        self._read = Reader(shapes[f"{SUBSCRIBE}Request"], messages).parse
        self._write = Writer(shapes[f"{SUBSCRIBE}Response"], messages).write
        self._streams = streams

    async def stream(self, data: bytes, context: Context) -> None:
        """The handler. A reader that does not read holds up itself: nothing is asked meanwhile."""
        try:
            said = said_in(context.invocation_metadata(), self._doorman)
            self._admission.count(said.speaker.bearer or NOBODY)
            address = address_of_peer(context.peer())
            with self._streams.one_more(await caller_of(self._backend, said.speaker, address)):
                given = _of_read_changes(self._read(data))
                async for page in self._following.pages(given, said.speaker):
                    told = {"changes": page["changes"], "next_seq": page["next_seq"]}
                    await context.write(self._write(told).SerializeToString())
        except RecollectError as error:
            await refuse(context, error)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await refuse(context, defect(SUBSCRIBE, error))


def _of_read_changes(given: dict[str, Any]) -> dict[str, Any]:
    """What a subscriber gives, under the names by which the feed is read."""
    if FROM_SEQ in given:
        given["after_seq"] = given.pop(FROM_SEQ)
    return given
