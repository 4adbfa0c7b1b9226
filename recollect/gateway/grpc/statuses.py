"""Errors as gRPC shows them: a status each, and the whole error beside it.

The statuses that ask to try again are UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED, and no
others; so a client that knows only gRPC does right by most errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from grpc import StatusCode

from recollect.protocol.errors import RecollectError

STATUSES: dict[str, StatusCode] = {
    "error": StatusCode.UNKNOWN,
    "invalid_request": StatusCode.INVALID_ARGUMENT,
    "invalid_argument": StatusCode.INVALID_ARGUMENT,
    "limit_exceeded": StatusCode.OUT_OF_RANGE,
    "malformed_request": StatusCode.INVALID_ARGUMENT,
    "unknown_operation": StatusCode.UNIMPLEMENTED,
    "unsupported_version": StatusCode.UNIMPLEMENTED,
    "unsupported": StatusCode.UNIMPLEMENTED,
    "secret_refused": StatusCode.INVALID_ARGUMENT,
    "path_refused": StatusCode.PERMISSION_DENIED,
    "unreadable_document": StatusCode.INVALID_ARGUMENT,
    "not_found": StatusCode.NOT_FOUND,
    "access": StatusCode.PERMISSION_DENIED,
    "unauthenticated": StatusCode.UNAUTHENTICATED,
    "forbidden": StatusCode.PERMISSION_DENIED,
    "conflict": StatusCode.ABORTED,
    "version_conflict": StatusCode.ABORTED,
    "already_exists": StatusCode.ALREADY_EXISTS,
    "cycle_refused": StatusCode.FAILED_PRECONDITION,
    "transition_refused": StatusCode.FAILED_PRECONDITION,
    "lease_lost": StatusCode.FAILED_PRECONDITION,
    "idempotency_conflict": StatusCode.FAILED_PRECONDITION,
    "changes_gone": StatusCode.OUT_OF_RANGE,
    "changes_ahead": StatusCode.OUT_OF_RANGE,
    "unavailable": StatusCode.UNAVAILABLE,
    "overloaded": StatusCode.UNAVAILABLE,
    "rate_limited": StatusCode.RESOURCE_EXHAUSTED,
    "shutting_down": StatusCode.UNAVAILABLE,
    "not_yet_visible": StatusCode.UNAVAILABLE,
    "embedder_unavailable": StatusCode.UNAVAILABLE,
    "chat_unavailable": StatusCode.UNAVAILABLE,
    "storage_full": StatusCode.RESOURCE_EXHAUSTED,
    "storage_failed": StatusCode.UNAVAILABLE,
    "deadline_exceeded": StatusCode.DEADLINE_EXCEEDED,
    "internal": StatusCode.INTERNAL,
    "transport": StatusCode.UNAVAILABLE,
    "unreachable": StatusCode.UNAVAILABLE,
    "connection_lost": StatusCode.UNAVAILABLE,
    "timeout": StatusCode.DEADLINE_EXCEEDED,
    "circuit_open": StatusCode.UNAVAILABLE,
    # It was the gateway's own line that was closed, so another try finds the next one.
    "client_closed": StatusCode.UNAVAILABLE,
}
"""The status of every code."""

ERROR = "recollect-error-bin"
RETRY_AFTER = "retry-after-ms"

# gRPC takes 8 kB of metadata in all, and a `-bin` value grows by a third on its way.
MESSAGE_CHARS_MAX = 1000
ERROR_BYTES_MAX = 4096


class Status(NamedTuple):
    """How a call ends that failed."""

    code: StatusCode
    message: str
    trailing: tuple[tuple[str, str | bytes], ...]


def status_of(error: RecollectError) -> Status:
    """The status, message and trailing metadata that go with an error."""
    trailing: list[tuple[str, str | bytes]] = [(ERROR, _as_json(error))]
    asked_ms = error.details.get("retry_after_ms")
    if isinstance(asked_ms, int | float) and asked_ms > 0:
        trailing.append((RETRY_AFTER, str(round(asked_ms))))
    code = STATUSES.get(error.code, StatusCode.UNKNOWN)
    return Status(code, _cut(error.message), tuple(trailing))


def _as_json(error: RecollectError) -> bytes:
    """The error as it is everywhere; without its details where these would not fit."""
    body: dict[str, Any] = dict(error.body())
    encoded = msgspec.json.encode(body, enc_hook=str)
    if len(encoded) <= ERROR_BYTES_MAX:
        return encoded
    return msgspec.json.encode(body | {"message": _cut(error.message), "details": {}})


def _cut(message: str) -> str:
    if len(message) <= MESSAGE_CHARS_MAX:
        return message
    return message[: MESSAGE_CHARS_MAX - 1] + "…"
