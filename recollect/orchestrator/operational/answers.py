"""Answers kept in memory by their idempotency keys: a retry gets the same, and changes nothing.

What is noted in operational memory is in no transaction with which its answer could be kept. A
retry comes within seconds, so that a bounded number of the last keys is enough.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.canonical import canonical
from recollect.protocol.errors import IdempotencyConflict
from recollect.protocol.operation import Operation

_encode = msgspec.msgpack.Encoder().encode
Kept = tuple[str, int, bytes]
"""The operation, the hash of what it asked for, and the answer."""


class Answers:
    """The last answers. Touched only on the event loop."""

    def __init__(self, keys_max: int) -> None:
        self._keys_max = keys_max
        # Of a plain dict the first would be looked for behind all that were taken out before it.
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def find(self, call: Call, operation: Operation[Any]) -> bytes | None:
        """What was answered under the key of a call; refuses a key that had another payload."""
        if call.key is None:
            return None
        kept = self._kept.get((call.identity, call.key))
        if kept is None:
            return None
        name, payload_hash, answer = kept
        if name != call.operation or payload_hash != hash_of(operation):
            raise IdempotencyConflict(
                f"The idempotency key {call.key!r} was used before with another operation or "
                "payload; use a new key for a new write.",
                key=call.key,
                operation=name,
            )
        return answer

    def keep(self, call: Call, operation: Operation[Any], result: Any) -> bytes:
        """The answer to a call, kept under its key."""
        answer = _encode(result)
        if call.key is not None:
            if len(self._kept) >= self._keys_max:
                self._kept.popitem(last=False)
            self._kept[call.identity, call.key] = (call.operation, hash_of(operation), answer)
        return answer


def hash_of(operation: Operation[Any]) -> int:
    """What tells one payload of a caller from another, within this process."""
    return hash(canonical(operation))


def mark_of(call: Call) -> str | None:
    """A name for what one caller sends under one key, wherever it is sent."""
    if call.key is None:
        return None
    whose = f"{call.identity}\x00{call.key}".encode()
    return hashlib.blake2b(whose, digest_size=12).hexdigest()
