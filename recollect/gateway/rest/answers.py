"""Answers on their way out: headers for all, and gzip for who takes it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable

from starlette.types import Send

from recollect.gateway.rest.problems import (
    CONTENT_TYPE,
    Header,
    headers_of,
    problem_of,
    status_of,
)
from recollect.protocol.errors import RecollectError

JSON = b"application/json"
GZIP_BYTES_MIN = 1024
GZIP_LEVEL = 4
# Compressing so much takes longer than others should wait for.
GZIP_ON_LOOP_BYTES_MAX = 256 * 1024

SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
)
"""Said with every answer: it is what it says it is, for whom it was asked, and kept by nobody."""


def takes_gzip(accepted: bytes | None) -> bool:
    """Whether `Accept-Encoding` names gzip, and does not refuse it."""
    if accepted is None or b"gzip" not in accepted:
        return False
    for part in accepted.split(b","):
        name, _, weight = part.partition(b";")
        if name.strip() == b"gzip":
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


async def send_answer(
    send: Send,
    status: int,
    body: bytes,
    headers: Iterable[Header] = (),
    *,
    content_type: bytes = JSON,
    accepted: bytes | None = None,
) -> None:
    """Send one whole answer. `accepted` is the Accept-Encoding of who asked."""
    all_headers = [(b"content-type", content_type), *SAFE, *headers]
    if len(body) >= GZIP_BYTES_MIN:
        all_headers.append((b"vary", b"accept-encoding"))
        if takes_gzip(accepted):
            body = await zipped(body)
            all_headers.append((b"content-encoding", b"gzip"))
    all_headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


async def send_problem(
    send: Send,
    error: RecollectError,
    headers: Iterable[Header] = (),
    *,
    status: int | None = None,
    accepted: bytes | None = None,
) -> None:
    """Send an error, with the status that goes with it unless another is given."""
    status = status_of(error) if status is None else status
    await send_answer(
        send,
        status,
        problem_of(error, status),
        [*headers_of(error, status), *headers],
        content_type=CONTENT_TYPE,
        accepted=accepted,
    )


async def zipped(body: bytes) -> bytes:
    """The body as gzip; a large one beside the event loop."""
    if len(body) > GZIP_ON_LOOP_BYTES_MAX:
        return await asyncio.to_thread(gzip.compress, body, GZIP_LEVEL, mtime=0)
    return gzip.compress(body, GZIP_LEVEL, mtime=0)
