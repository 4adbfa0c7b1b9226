"""The door: whose message it is, asked anew at each of them.

A connection outlives what its key may do. So the key that ZeroMQ attached to a message is looked up
every time, and a message whose key is no longer known is answered and not read any further.
"""

from __future__ import annotations

import msgspec

from recollect.orchestrator.access.attempts import STRANGER
from recollect.orchestrator.access.keyring import Keyring
from recollect.orchestrator.access.refusals import RefusalLog
from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.dispatch import Answer, Dispatcher
from recollect.protocol.envelope import (
    NAME_CHARS_MAX,
    PROTOCOL_VERSION,
    Reply,
    Request,
    decode_request,
    decode_salvage,
)
from recollect.protocol.errors import Unauthenticated
from recollect.protocol.operations import REGISTRY

UNREADABLE = "unreadable"
_encode = msgspec.msgpack.Encoder().encode


class Door:
    """Lets messages through to the dispatcher, or turns them away. Lives on the event loop."""

    def __init__(
        self, keyring: Keyring, dispatcher: Dispatcher, refusals: RefusalLog, clock: Clock
    ) -> None:
        self._keyring = keyring
        self._dispatcher = dispatcher
        self._refusals = refusals
        self._clock = clock

    def enter(self, frame: bytes, answer: Answer, public_key: str | None) -> None:
        """Answer one frame, which came with this key."""
        identity = self._keyring.identity(public_key)
        if identity is not None:
            self._dispatcher.dispatch(frame, answer, identity)
        else:
            self._turn_away(frame, answer, public_key)

    def _turn_away(self, frame: bytes, answer: Answer, public_key: str | None) -> None:
        request, request_id = _read(frame)
        name = self._keyring.revoked_name(public_key)
        now_us = self._clock.now_us()
        reason = "unknown key" if name is None else "revoked key"
        self._refusals.note(
            Call(
                operation=request.op if request.op in REGISTRY else UNREADABLE,
                now_us=now_us,
                deadline_us=now_us,
                identity=name or STRANGER,
                agent=_short(request.agent),
                trace=_short(request.trace),
                task=_short(request.task),
                refusals=[Refusal(public_key or "", None, reason)],
            )
        )
        error = Unauthenticated(
            "The orchestrator does not know this key any more. `recollect keys new NAME`, run "
            "where it is served, makes another."
        )
        self._dispatcher.failed[error.code] += 1
        body = _encode(error.reply())
        answer(_encode(Reply(PROTOCOL_VERSION, request_id, now_us // 1000, body)))


def _read(frame: bytes) -> tuple[Request, int | str | None]:
    """What can be read of a request, and the id that its answer carries."""
    try:
        request = decode_request(frame)
        return request, request.id
    except (msgspec.DecodeError, ValueError, RecursionError):
        nothing = Request(PROTOCOL_VERSION, "", "")
    try:
        return nothing, decode_salvage(frame).id
    except (msgspec.DecodeError, ValueError, RecursionError):
        return nothing, None


def _short(name: str | None) -> str | None:
    """A name that can be kept, or none."""
    kept = name is not None and len(name) <= NAME_CHARS_MAX and "\x00" not in name
    return name if kept else None
