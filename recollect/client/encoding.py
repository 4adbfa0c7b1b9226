"""An operation as the bytes that travel, and what to say about one that cannot."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from recollect.client.bounds import check_seconds
from recollect.protocol.envelope import IDEMPOTENCY_KEY_CHARS_MAX, PROTOCOL_VERSION, Request
from recollect.protocol.errors import InvalidArgument, LimitExceeded
from recollect.protocol.operation import Operation, Spec

PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
"""As much as an orchestrator may be set to take; one that takes less refuses it itself."""
NESTING_MAX = 32
PLAIN = frozenset({str, int, float, bool, type(None)})

# Operations of this access change something, and so carry an idempotency key.
WRITING = ("write", "admin")

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


class Speaker(msgspec.Struct, frozen=True):
    """For whom a client speaks: what each of its requests says of itself."""

    agent: str | None = None
    session: str | None = None
    task: str | None = None
    fence: str | None = None
    bearer: str | None = None
    """The bearer key of whom it is carried for, where that is not the client itself."""
    trace: str | None = None

    def __repr__(self) -> str:
        return f"Speaker(agent={self.agent!r}, session={self.session!r}, task={self.task!r})"


NOBODY = Speaker()


class Call(msgspec.Struct, frozen=True):
    """One operation ready to be sent: what stays the same over all its attempts."""

    spec: Spec
    body: bytes
    key: str | None
    timeout_s: float | None


def prepare(
    operation: Operation[Any], *, now_ms: Callable[[], int], randomness: random.Random
) -> Call:
    """Encode an operation; its call options move out of the body."""
    spec = operation.spec
    timeout_s, key = operation.timeout, operation.idempotency_key
    if timeout_s is not None or key is not None:
        _check_options(timeout_s, key)
        operation = msgspec.structs.replace(operation, timeout=None, idempotency_key=None)
    for name in _nesting_fields(type(operation)):
        value = getattr(operation, name)
        if value is None or value is msgspec.UNSET:
            continue
        if type(value) is bytes and name in _packed_fields(type(operation)):
            continue
        _check_plain(name, value, 0)
    try:
        body = encode(operation)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.EncodeError) as error:
        raise _unencodable(operation, error) from error
    if len(body) > PAYLOAD_BYTES_MAX:
        raise LimitExceeded(
            f"The arguments of {spec.name} take {len(body):,} bytes, more than payload_bytes_max "
            f"({PAYLOAD_BYTES_MAX:,}): send less at once.",
            limit="payload_bytes_max",
            maximum=PAYLOAD_BYTES_MAX,
            actual=len(body),
        )
    if spec.access not in WRITING:
        key = None
    elif key is None:
        key = new_key(now_ms(), randomness)
    return Call(spec, body, key, timeout_s)


@cache
def _nesting_fields(operation: type[Operation[Any]]) -> tuple[str, ...]:
    """The fields that may hold objects and lists."""
    text = {field.name: repr(field.type) for field in msgspec.structs.fields(operation)}
    return tuple(
        n for n, kind in text.items() if "dict[" in kind or "list[" in kind or "Any" in kind
    )


@cache
def _packed_fields(operation: type[Operation[Any]]) -> frozenset[str]:
    """The fields whose numbers may come as bytes."""
    fields = msgspec.structs.fields(operation)
    return frozenset(field.name for field in fields if "bytes" in repr(field.type))


def _check_plain(path: str, value: Any, depth: int) -> None:
    """Refuse what the encoder would quietly turn into something else: sets, dates, objects."""
    if depth > NESTING_MAX:
        return  # left to the encoder and to the orchestrator's own limit
    if isinstance(value, dict):
        for key, part in value.items():
            if type(part) not in PLAIN:
                _check_plain(f"{path}.{key}", part, depth + 1)
    elif isinstance(value, list | tuple):
        # A vector has hundreds of numbers: one look at the types of all of them.
        if PLAIN.issuperset(map(type, value)):
            return
        for place, part in enumerate(value):
            if type(part) not in PLAIN:
                _check_plain(f"{path}[{place}]", part, depth + 1)
    elif not isinstance(value, str | int | float | bool | None | msgspec.Struct):
        raise InvalidArgument(
            f"{path} is a {type(value).__name__}, which is not JSON; convert it to text, a number, "
            "a list or a dict first.",
            field=path,
        )


def frame_of(call: Call, request_id: int, deadline_ms: int, speaker: Speaker) -> bytes:
    """One attempt of a call as the frame that travels."""
    return encode(
        Request(
            PROTOCOL_VERSION,
            request_id,
            call.spec.name,
            call.body,
            deadline_ms,
            call.key,
            speaker.trace,
            speaker.agent,
            speaker.session,
            speaker.task,
            speaker.fence,
            speaker.bearer,
        )
    )


def new_key(now_ms: int, randomness: random.Random) -> str:
    """An idempotency key: later ones sort behind, and 80 random bits keep any two apart."""
    return f"{now_ms:012x}{randomness.getrandbits(80):020x}"


def _check_options(timeout_s: object, key: object) -> None:
    if timeout_s is not None:
        check_seconds("timeout", timeout_s)
    if key is not None and not (
        isinstance(key, str) and 1 <= len(key) <= IDEMPOTENCY_KEY_CHARS_MAX
    ):
        raise InvalidArgument(
            f"idempotency_key must be a text of 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters.",
            field="idempotency_key",
        )


def _unencodable(operation: Operation[Any], error: Exception) -> InvalidArgument:
    for name in operation.__struct_fields__:
        path = _culprit(getattr(operation, name), name, 0)
        if path is not None:
            return InvalidArgument(f"{path[0]} cannot be sent: {path[1]}.", field=path[0])
    return InvalidArgument(f"{operation.spec.name} cannot be sent: {error}.")


def _culprit(value: Any, path: str, depth: int) -> tuple[str, str] | None:
    """The innermost part of a value that cannot be encoded, with the reason; None if all can."""
    try:
        encode(value)
        return None
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.EncodeError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
    if depth < NESTING_MAX:
        parts: list[tuple[Any, str]] = []
        if isinstance(value, dict):
            parts = [(part, f"{path}.{name}") for name, part in value.items()]
        elif isinstance(value, list | tuple):
            parts = [(part, f"{path}[{place}]") for place, part in enumerate(value)]
        for part, part_path in parts:
            found = _culprit(part, part_path, depth + 1)
            if found is not None:
                return found
    if isinstance(value, str):
        reason = "it is not valid Unicode"
    elif depth >= NESTING_MAX:
        reason = "it is nested too deeply, or contains itself"
    return path, reason
