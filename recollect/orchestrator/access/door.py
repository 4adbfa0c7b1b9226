"""The door: whose message it is, asked anew at each of them.

A connection outlives what its key may do. So the key that ZeroMQ attached to a message is looked up
every time, and a message whose key is no longer known is answered and not read any further than to
say what it asked for.
"""

from __future__ import annotations

import msgspec

from recollect.orchestrator.access.attempts import UNREADABLE, Attempts
from recollect.orchestrator.access.keyring import Keyring, unknown_key
from recollect.orchestrator.serving.dispatch import Dispatcher
from recollect.orchestrator.serving.error_answers import Answer
from recollect.protocol.envelope import decode_request, decode_salvage
from recollect.protocol.errors import MalformedRequest
from recollect.protocol.operations import REGISTRY

_UNREADABLE_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)


class Door:
    """Lets messages through to the dispatcher, or turns them away. Lives on the event loop."""

    def __init__(self, keyring: Keyring, dispatcher: Dispatcher, attempts: Attempts) -> None:
        self._keyring = keyring
        self._dispatcher = dispatcher
        self._attempts = attempts

    def enter(self, frame: bytes, answer: Answer, public_key: str | None) -> None:
        """Answer one frame, which came with this key."""
        identity = self._keyring.identity(public_key)
        if identity is not None:
            self._dispatcher.dispatch(frame, answer, identity)
        else:
            self._turn_away(frame, answer, public_key)

    def refuse_named(self, frame: bytes, answer: Answer) -> None:
        """Turn away a message of a socket that has named itself.

        Answers find their way by the routing id, and when a connection is lost its id is free:
        whoever names itself alike would be sent what another had asked for.
        """
        operation, request_id = _read(frame)
        error = MalformedRequest(
            "This socket has set ZMQ_ROUTING_ID. Where keys are asked for, only sockets that have "
            "not are answered: leave the option alone."
        )
        self._dispatcher.refuse(request_id, operation, error, answer)

    def _turn_away(self, frame: bytes, answer: Answer, public_key: str | None) -> None:
        name = self._keyring.revoked_name(public_key)
        reason = "unknown key" if name is None else "revoked key"
        operation, request_id = _read(frame)
        self._attempts.denied(public_key or "", "", reason, name, operation)
        self._dispatcher.refuse(request_id, operation, unknown_key(public_key), answer)


def _read(frame: bytes) -> tuple[str, int | str | None]:
    """What a request asks for, and the id that its answer carries, as far as they can be read."""
    try:
        request = decode_request(frame)
        return (request.op if request.op in REGISTRY else UNREADABLE), request.id
    except _UNREADABLE_ERRORS:
        pass
    try:
        return UNREADABLE, decode_salvage(frame).id
    except _UNREADABLE_ERRORS:
        return UNREADABLE, None
