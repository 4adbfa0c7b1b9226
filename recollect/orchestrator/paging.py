"""Cursors: where a page ended, as opaque text that fits only the query it came from."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import msgspec

from recollect.orchestrator.canonical import canonical
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operation import Operation

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[Any]]).decode


def fingerprint(operation: Operation[Any]) -> int:
    """What must stay the same from page to page: everything but the cursor, the size of a page and
    what is shown there."""
    fields = msgspec.structs.asdict(operation)
    for name in ("cursor", "limit", "k", "fields", "timeout", "idempotency_key", "min_seq"):
        fields.pop(name, None)
    return zlib.crc32(canonical([operation.spec.name, fields]))


def make_cursor(operation: Operation[Any], position: list[Any]) -> str:
    """A cursor that leads on from a position."""
    packed = _encode((fingerprint(operation), position))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(
    operation: Operation[Any], cursor: str | None, parts: int, *, texts: int = 0
) -> list[Any] | None:
    """The position a cursor stands for; the first so many of its parts are texts."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        mark, position = _decode(base64.urlsafe_b64decode(padded.encode()))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        mark, position = -1, []
    if mark != fingerprint(operation) or len(position) != parts:
        raise InvalidArgument(
            "The cursor does not belong to this query: use the `cursor` of the last page with the "
            "same arguments, or none to begin anew.",
            field="cursor",
        )
    # Beyond this a number does not fit into a column; nor does one that is not finite.
    numbers = (isinstance(part, int | float) and abs(part) < 1 << 63 for part in position[texts:])
    names = (isinstance(part, str) and "\x00" not in part for part in position[:texts])
    if not (all(numbers) and all(names)):
        raise InvalidArgument("The cursor is damaged; begin anew without it.", field="cursor")
    return position
