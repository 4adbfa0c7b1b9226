"""What an endpoint that speaks OpenAI's protocol says about embeddings, read with care.

A server may answer in any order, as numbers or as base64, with its vectors not of length one, with
an error as JSON or as a web page of some proxy. Here that becomes unit vectors, or one of two
errors: `Transient`, which is worth another attempt, and EmbedderUnavailable, which is not.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.protocol.errors import EmbedderUnavailable

DETAIL_CHARS_MAX = 300
ADVICE = {
    400: "Check embedding.model and embedding.dimensions.",
    401: "Check the key in the environment variable that embedding.openai_key_variable names.",
    402: "Check the account's balance.",
    403: "Check that the key may use the model in embedding.model.",
    404: "Check embedding.openai_url and embedding.model.",
    413: "Make embedding.batch_texts_max smaller.",
    422: "Check embedding.model and embedding.dimensions.",
}
# A server that is busy, restarting or behind a proxy that gave up: it may answer the next time.
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})


class Transient(Exception):
    """An attempt failed in a way that the next one may not."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class Usage(msgspec.Struct):
    total_tokens: int | None = None
    prompt_tokens: int | None = None


class Answer(msgspec.Struct):
    data: list[Item]
    usage: Usage | None = None

    def tokens(self) -> int:
        if self.usage is None:
            return 0
        return self.usage.total_tokens or self.usage.prompt_tokens or 0


_decoder = msgspec.json.Decoder(Answer)


def encode(model: str, texts: list[str], dimensions: int | None) -> bytes:
    """The body of a request."""
    body: dict[str, Any] = {"model": model, "input": texts, "encoding_format": "float"}
    if dimensions is not None:
        body["dimensions"] = dimensions
    return msgspec.json.encode(body)


def decode(body: bytes, count: int) -> tuple[Vectors, int]:
    """Unit vectors in the order of the texts, and the tokens that were counted."""
    try:
        answer = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        # Half an answer, or a page of something between us and the server.
        raise Transient(f"it answered something else than embeddings ({error})") from error
    if len(answer.data) != count:
        raise _wrong(f"{len(answer.data)} vectors for {count} texts")
    rows: list[Vectors | None] = [None] * count
    for position, item in enumerate(answer.data):
        at = position if item.index is None else item.index
        if not 0 <= at < count or rows[at] is not None:
            raise _wrong("vectors whose indices do not number the texts")
        rows[at] = _numbers(item.embedding)
    ordered = [row for row in rows if row is not None]
    if len({len(row) for row in ordered}) > 1:
        raise _wrong("vectors of different lengths")
    vectors = np.stack(ordered)
    if not vectors.size:
        raise _wrong("empty vectors")
    if not np.isfinite(vectors).all():
        raise _wrong("numbers that are not finite")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=vectors, where=norms > 0), answer.tokens()


def _numbers(embedding: list[float] | str) -> Vectors:
    if isinstance(embedding, list):
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            return np.array(embedding, np.float32)
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as error:
        raise _wrong("a vector that is neither a list of numbers nor base64") from error


def _wrong(what: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The embedding server answered {what}; it does not speak OpenAI's protocol as it should."
    )


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> Exception:
    """The error for an answer whose status is not 200."""
    kind, detail = _detail(body)
    if status == 429 and kind == "insufficient_quota":
        return EmbedderUnavailable(
            f"The embedding server refused (429): {detail}. {ADVICE[402]}", http_status=status
        )
    if status in TRANSIENT_STATUSES or status >= 500:
        return Transient(f"it answered {status}: {detail}", retry_after_s=retry_after_s(headers))
    advice = ADVICE.get(status, "Check embedding.openai_url.")
    if 300 <= status < 400:
        detail = f"moved to {headers.get('location', 'another address')}"
    return EmbedderUnavailable(
        f"The embedding server refused ({status}): {detail}. {advice}", http_status=status
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait; a date is read against the server's own clock."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        asked = headers.get("retry-after", "")
        if asked.replace(".", "", 1).isdigit():
            return float(asked)
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, wait.total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _detail(body: bytes) -> tuple[str, str]:
    """The server's own code and words for an error, as far as they can be told."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        told = None
    error = told.get("error", told) if isinstance(told, dict) else told
    if isinstance(error, dict):
        code = str(error.get("code") or error.get("type") or "")
        text = str(error.get("message") or error.get("detail") or code or "no reason given")
    else:
        code, text = "", str(error) if isinstance(error, str) else "no reason given"
    return code, " ".join(text.split())[:DETAIL_CHARS_MAX].rstrip(".")
