"""What an endpoint that speaks OpenAI's protocol says about embeddings, read with care.

A server may answer in any order, as numbers or as base64, with its vectors not of length one. Here
that becomes unit vectors, or one of two errors: `Transient`, which is worth another attempt, and
EmbedderUnavailable, which is not.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.outside.openai_endpoint import Kind, Transient
from recollect.protocol.errors import EmbedderUnavailable

SERVER = Kind(
    name="embedding server",
    user="An OpenAI-compatible embedder",
    url_setting="embedding.openai_url",
    key_setting="embedding.openai_key_variable",
    error=EmbedderUnavailable,
    advice={
        400: "Check embedding.model and embedding.dimensions.",
        401: "Check the key in the environment variable that embedding.openai_key_variable names.",
        402: "Check the account's balance.",
        403: "Check that the key may use the model in embedding.model.",
        404: "Check embedding.openai_url and embedding.model.",
        413: "Make embedding.batch_texts_max smaller.",
        422: "Check embedding.model and embedding.dimensions.",
    },
)


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
