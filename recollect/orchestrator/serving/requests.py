"""Frames read as requests: whole, of this version and within bounds, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from recollect.protocol.envelope import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    NAME_CHARS_MAX,
    PROTOCOL_VERSION,
    Request,
    decode_request,
    decode_salvage,
)
from recollect.protocol.errors import (
    InvalidArgument,
    LimitExceeded,
    MalformedRequest,
    UnsupportedVersion,
)
from recollect.protocol.explaining import explain
from recollect.protocol.operation import Operation
from recollect.protocol.operations import REGISTRY

NAME_LIMITS = {
    "key": IDEMPOTENCY_KEY_CHARS_MAX,
    "agent": NAME_CHARS_MAX,
    "session": NAME_CHARS_MAX,
    "trace": NAME_CHARS_MAX,
    "task": NAME_CHARS_MAX,
    "fence": NAME_CHARS_MAX,
}


def read_request(frame: bytes, payload_bytes_max: int) -> Request:
    """The request in a frame; what it asks for is not looked at yet."""
    if len(frame) > payload_bytes_max:
        raise LimitExceeded(
            f"The request has {len(frame):,} bytes; the limit limits.payload_bytes_max is "
            f"{payload_bytes_max:,}.",
            limit="limits.payload_bytes_max",
            maximum=payload_bytes_max,
            actual=len(frame),
        )
    try:
        request = decode_request(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        version = _salvaged_version(frame)
        if version not in (None, PROTOCOL_VERSION):
            raise _other_version(version) from None
        raise MalformedRequest(
            f"The frame is not a request of this protocol: {error}. See docs/protocol.md."
        ) from None
    if request.v != PROTOCOL_VERSION:
        raise _other_version(request.v)
    return request


def check_names(request: Request) -> None:
    """Refuse names and keys that are too long to keep."""
    for name, maximum in NAME_LIMITS.items():
        text = getattr(request, name)
        if text is not None and (len(text) > maximum or "\x00" in text):
            raise LimitExceeded(
                f"{name} has more than {maximum} characters, or a NUL among them.",
                field=name,
                limit=name,
                maximum=maximum,
            )


def read_operation(decode: Callable[[bytes], Operation[Any]], request: Request) -> Operation[Any]:
    """What a request asks for, in the shape that was declared."""
    try:
        operation = decode(request.body)
    except msgspec.ValidationError as error:
        raise explain(error, REGISTRY[request.op], request.op) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedRequest(
            f"The body of {request.op} is not a MessagePack map of its fields: {error}."
        ) from None
    if operation.timeout is not None or operation.idempotency_key is not None:
        raise InvalidArgument(
            "timeout and idempotency_key travel in the envelope, as deadline_ms and key."
        )
    return operation


def salvaged_id(frame: bytes) -> int | str | None:
    """The id of a request that cannot be read otherwise, so that it can be answered."""
    try:
        return decode_salvage(frame).id
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _salvaged_version(frame: bytes) -> int | None:
    try:
        return decode_salvage(frame).v
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _other_version(version: int | None) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"This orchestrator speaks version {PROTOCOL_VERSION} of the protocol, not {version}.",
        supported=[PROTOCOL_VERSION],
    )
