"""The bodies of requests: each bounded in size and in time while it is read, and all together in
what they take meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Receive

from recollect.gateway.rest.problems import Refusal
from recollect.protocol.errors import (
    DeadlineExceeded,
    LimitExceeded,
    MalformedRequest,
    Overloaded,
)

# So much of a body is taken from everybody: the server itself holds as much of each connection.
SMALL_BYTES = 64 * 1024
# How many bodies of the largest size may be on their way at once.
LARGEST_AT_ONCE = 16
RETRY_AFTER_MS = 1_000
# What is left of a body that was refused is not read: the connection ends with the answer.
CLOSE = (b"connection", b"close")


class CallerGone(Exception):
    """Whoever asked has hung up, and nobody is there to be answered."""


class Bodies:
    """Reads bodies. One that is long in coming takes the place of nobody, but for those of other
    large ones. Lives on the event loop."""

    def __init__(self, bytes_max: int, within_s: float) -> None:
        self._bytes_max = bytes_max
        self._within_s = within_s
        self._room_bytes = LARGEST_AT_ONCE * max(bytes_max, SMALL_BYTES)

    async def read_json(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The whole body, which must be JSON if there is one; raises Refusal or CallerGone."""
        kind = headers.get(b"content-type")
        if kind is not None and not is_json(kind):
            # A form on a page of somebody else can send any body but this kind.
            raise _wrong_kind("is not JSON")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise _wrong_kind("has a Content-Encoding")
        body = await self.read(headers, receive)
        if body and kind is None:
            raise _wrong_kind("has no Content-Type")
        return body

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The whole body, of whatever kind; raises Refusal or CallerGone."""
        length = headers.get(b"content-length")
        if length is not None and int(length) > self._bytes_max:
            raise _too_large(self._bytes_max)
        parts: list[bytes] = []
        size = taken = 0
        try:
            async with asyncio.timeout(self._within_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise CallerGone
                    part: bytes = message.get("body", b"")
                    size += len(part)
                    if size > self._bytes_max:
                        raise _too_large(self._bytes_max)
                    if not message.get("more_body", False):
                        return b"".join([*parts, part]) if parts else part
                    if size - taken > SMALL_BYTES:
                        self._take(size - SMALL_BYTES - taken)
                        taken = size - SMALL_BYTES
                    parts.append(part)
        except TimeoutError:
            why = f"The body did not come within {self._within_s:g} seconds."
            raise Refusal(DeadlineExceeded(why), 408, CLOSE) from None
        finally:
            self._room_bytes += taken

    def _take(self, size: int) -> None:
        if size > self._room_bytes:
            error = Overloaded(
                "Too many large bodies are on their way already; try again shortly.",
                limit="gateway.body_bytes_max",
                retry_after_ms=RETRY_AFTER_MS,
            )
            raise Refusal(error, 503, CLOSE)
        self._room_bytes -= size


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request comes with a body."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def is_json(kind: bytes) -> bool:
    """Whether a Content-Type is JSON, or a kind of it such as application/merge-patch+json."""
    essence = kind.partition(b";")[0].strip().lower()
    if essence == b"application/json":
        return True
    return essence.startswith(b"application/") and essence.endswith(b"+json")


def _too_large(bytes_max: int) -> Refusal:
    error = LimitExceeded(
        f"The body has more than {bytes_max:,} bytes (gateway.body_bytes_max): send less at once.",
        limit="gateway.body_bytes_max",
        maximum=bytes_max,
    )
    return Refusal(error, 413, CLOSE)


def _wrong_kind(what: str) -> Refusal:
    error = MalformedRequest(f"The body {what}: send JSON with Content-Type: application/json.")
    return Refusal(error, 415, CLOSE)
