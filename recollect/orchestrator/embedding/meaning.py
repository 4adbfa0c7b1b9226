"""Meaning: one model's embedder together with the index of its vectors.

They are only ever used and exchanged together, so that no query is compared with the vectors of
another model.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.embedding.interface import Pooled, Vectors
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.protocol.errors import EmbedderUnavailable


class Meaning(msgspec.Struct, frozen=True, eq=False):
    """An embedder and the index of what it embedded."""

    embedding: Embedding
    index: VectorIndex

    @property
    def model(self) -> str:
        return self.embedding.model


class Embedded(msgspec.Struct, frozen=True):
    """The vectors of some texts; None for those that are to be embedded later."""

    meaning: Meaning
    texts: Sequence[str]
    vectors: Sequence[Vectors | None]
    passages: Sequence[bytes] = ()
    """What is kept of the passages of each text; nothing at all if the model has none."""

    @classmethod
    def of(
        cls, meaning: Meaning, texts: Sequence[str], pooled: Sequence[Pooled | None]
    ) -> Embedded:
        """What the embedder made of some texts."""
        return cls(
            meaning,
            texts,
            [None if one is None else one.vector for one in pooled],
            [b"" if one is None else one.passages for one in pooled],
        )

    def passages_at(self, place: int) -> bytes | None:
        """The passages of one text, if there are several."""
        return (self.passages[place] or None) if self.passages else None

    def chosen(self, places: Sequence[int]) -> Embedded:
        """Only those at some places."""
        return Embedded(
            self.meaning,
            [self.texts[place] for place in places],
            [self.vectors[place] for place in places],
            [self.passages[place] for place in places] if self.passages else (),
        )


class Meanings:
    """The meaning in use. Exchanged on the event loop; whoever uses it takes it once and keeps it.

    A write waits for its vectors no longer than `wait_s`; after that it does without them.
    """

    def __init__(self, current: Meaning, wait_s: float) -> None:
        self.current = current
        self.coming: Meaning | None = None
        """The one that is being made to take its place."""
        self.leaving: list[Meaning] = []
        """Those that were replaced or given up, until their files are removed."""
        self._wait_s = wait_s

    def opened(self) -> list[Meaning]:
        """All that may have files and threads."""
        coming = [] if self.coming is None else [self.coming]
        return [self.current, *coming, *self.leaving]

    def remove(self, num: int) -> None:
        """A memory is gone, from what is in use and from what is coming."""
        self.current.index.remove(num)
        if self.coming is not None:
            self.coming.index.remove(num)

    def embed_now(self, texts: Sequence[str]) -> Embedded:
        """Vectors from an embedder that needs no other thread."""
        current = self.current
        try:
            return Embedded(current, texts, list(current.embedding.embed_now(texts)))
        except EmbedderUnavailable:
            return Embedded(current, texts, [None] * len(texts))

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of memories, as many as can be had in time."""
        current = self.current
        pooled = await current.embedding.pooled_within(texts, self._wait_s)
        return Embedded.of(current, texts, pooled)

    async def embed_one(self, text: str) -> Embedded:
        """The vector of one memory."""
        if self.current.embedding.inline:
            return self.embed_now([text])
        return await self.embed([text])
