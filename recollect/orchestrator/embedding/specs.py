"""Which embedder: a description that can be kept in the store and made real again."""

from __future__ import annotations

from typing import Literal

import msgspec

Provider = Literal["local", "hashed", "openai"]

HASHED_DIMENSIONS = 256
HASHED_MODEL = "hashed-ngrams-v1/"


class EmbedderSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that decides what vectors a text gets, and from whom."""

    provider: Provider
    model: str = ""
    dimensions: int | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None

    def to_text(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_text(cls, text: str) -> EmbedderSpec:
        return msgspec.json.decode(text, type=cls)

    def describe(self) -> str:
        """A name for people."""
        return self.provider if self.provider == "hashed" else f"{self.provider}:{self.model}"


def hashed(dimensions: int | None = None) -> EmbedderSpec:
    """The light embedder, which is always at hand."""
    return EmbedderSpec("hashed", dimensions=dimensions or HASHED_DIMENSIONS)


def spec_of_stored(model: str) -> EmbedderSpec | None:
    """The embedder of vectors from before stores knew their own."""
    if not model.startswith(HASHED_MODEL):
        return None
    return hashed(int(model.removeprefix(HASHED_MODEL)))
