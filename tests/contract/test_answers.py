"""Whoever asks is answered, whatever becomes of the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.protocol.envelope import decode_reply
from recollect.protocol.errors import NotFound
from tests.harness.worlds import World


def test_an_error_that_cannot_be_sent_is_answered_by_another(world: World) -> None:
    given: list[bytes] = []
    unsendable = NotFound("There is no file '\udcff'.", path="\udcff")
    world.orchestrator.dispatcher.refuse(7, "get_memory", unsendable, given.append)
    [frame] = given
    reply = decode_reply(frame)
    body: dict[str, Any] = msgspec.msgpack.decode(reply.body)
    assert reply.id == 7
    assert body["error"]["code"] == "internal"
