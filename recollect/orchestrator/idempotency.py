"""A write takes effect once: its answer is kept under its key, in the write's own transaction."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.storage.interface import WriteFunction, WriteTransaction
from recollect.protocol.errors import IdempotencyConflict
from recollect.protocol.operation import Operation

FIND = "SELECT operation, payload_hash, reply FROM idempotency WHERE identity = ? AND key = ?"
KEEP = """
INSERT INTO idempotency (identity, key, operation, payload_hash, reply, at_us)
VALUES (?, ?, ?, ?, ?, ?)
"""
# A bounded step, so that trimming never holds up the writer for long.
TRIM = """
DELETE FROM idempotency WHERE (identity, key) IN (
    SELECT identity, key FROM idempotency WHERE at_us < ? ORDER BY at_us LIMIT ?
)
"""
TRIM_ROWS = 5_000

_canonical = msgspec.msgpack.Encoder(order="deterministic").encode
_encode = msgspec.msgpack.Encoder().encode


def once(
    call: Call, operation: Operation[Any], function: WriteFunction[Any]
) -> WriteFunction[bytes]:
    """The write as one that gives its encoded answer, and the same answer when it comes again."""
    if call.key is None:
        return lambda transaction: _encode(function(transaction))
    key = call.key
    payload_hash = hashlib.blake2b(_canonical(operation), digest_size=16).digest()

    def write(transaction: WriteTransaction) -> bytes:
        for name, known_hash, reply in transaction.execute(FIND, (call.identity, key)):
            if name != call.operation or bytes(known_hash) != payload_hash:
                raise IdempotencyConflict(
                    f"The idempotency key {key!r} was used before with another operation or "
                    "payload; use a new key for a new write.",
                    key=key,
                    operation=name,
                )
            return bytes(reply)
        reply = _encode(function(transaction))
        transaction.execute(
            KEEP, (call.identity, key, call.operation, payload_hash, reply, call.now_us)
        )
        return reply

    return write


def trim(before_us: int, transaction: WriteTransaction) -> None:
    """Forget the oldest answers, a bounded number at a time."""
    transaction.execute(TRIM, (before_us, TRIM_ROWS))
