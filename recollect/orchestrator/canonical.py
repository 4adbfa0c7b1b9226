"""The same bytes for equal values: what tells a repeated request from another one."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.protocol.errors import InvalidArgument

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def canonical(value: Any) -> bytes:
    """A value from a request as bytes that do not depend on the order of keys."""
    try:
        return _encode(value)
    except TypeError:
        raise InvalidArgument(
            "An object in the arguments has a key that is not text; keys are text."
        ) from None
