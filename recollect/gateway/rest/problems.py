"""Errors as HTTP shows them: a status each, and one body for all (RFC 9457)."""

from __future__ import annotations

import math
from http import HTTPStatus

import msgspec

from recollect.protocol.errors import RecollectError

CONTENT_TYPE = b"application/problem+json"
TYPE_PREFIX = "urn:recollect:error:"

STATUSES: dict[str, int] = {
    "error": 500,
    "invalid_request": 400,
    "invalid_argument": 400,
    "limit_exceeded": 413,
    "malformed_request": 400,
    "unknown_operation": 404,
    "unsupported_version": 400,
    "unsupported": 422,
    "secret_refused": 422,
    "path_refused": 403,
    "unreadable_document": 422,
    "not_found": 404,
    "access": 403,
    "unauthenticated": 401,
    "forbidden": 403,
    "conflict": 409,
    "version_conflict": 409,
    "already_exists": 409,
    "cycle_refused": 409,
    "transition_refused": 409,
    "lease_lost": 409,
    "idempotency_conflict": 409,
    "changes_gone": 410,
    "changes_ahead": 409,
    "unavailable": 503,
    "overloaded": 503,
    "rate_limited": 429,
    "shutting_down": 503,
    "not_yet_visible": 503,
    "embedder_unavailable": 503,
    "chat_unavailable": 503,
    "storage_full": 507,
    "storage_failed": 503,
    "deadline_exceeded": 504,
    "internal": 500,
    "transport": 503,
    "unreachable": 503,
    "connection_lost": 503,
    "timeout": 504,
    "circuit_open": 503,
    "client_closed": 503,
}
"""The status of every code; a version other than a header wants is 412."""

# What a client waits at least before it asks again whoever cannot serve now.
RETRY_AFTER_S = 1
WAITED_FOR = frozenset({429, 503})

Header = tuple[bytes, bytes]


class Refusal(Exception):
    """An error that HTTP has a status of its own for, or headers."""

    def __init__(self, error: RecollectError, status: int, *headers: Header) -> None:
        super().__init__(error.message)
        self.error = error
        self.status = status
        self.headers = headers


class Problem(msgspec.Struct, frozen=True):
    """The body of every answer that is none: members of RFC 9457, and the error as everywhere."""

    type: str
    title: str
    status: int
    detail: str
    error: dict[str, object]


def status_of(error: RecollectError, *, conditional: bool = False) -> int:
    """The status that goes with an error. `conditional`: a header said which
    version is wanted."""
    if conditional and error.code in ("version_conflict", "already_exists"):
        return HTTPStatus.PRECONDITION_FAILED
    return STATUSES.get(error.code, 500)


def problem_of(error: RecollectError, status: int) -> bytes:
    """The body for an error."""
    title = HTTPStatus(status).phrase
    body = dict(error.body())
    return msgspec.json.encode(
        Problem(TYPE_PREFIX + error.code, title, status, error.message, body)
    )


def headers_of(error: RecollectError, status: int) -> list[Header]:
    """The headers that tell what to do about an error."""
    if status == HTTPStatus.UNAUTHORIZED:
        return [(b"www-authenticate", b'Bearer realm="recollect"')]
    if status in WAITED_FOR:
        asked_ms = error.details.get("retry_after_ms")
        known = isinstance(asked_ms, int | float) and asked_ms > 0
        wait_s = math.ceil(asked_ms / 1000) if known else RETRY_AFTER_S  # type: ignore[operator]
        return [(b"retry-after", str(wait_s).encode())]
    return []
