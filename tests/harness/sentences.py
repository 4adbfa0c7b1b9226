"""A deterministic embedder whose documents have passages, and that a test can send away."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.orchestrator.embedding.passages import fewer, packed
from recollect.orchestrator.search.ranking import passages
from recollect.protocol.errors import EmbedderUnavailable


class SentenceEmbedder(HashedEmbedder):
    """The hashed embedder, over a text and over each of its sentences."""

    inline = False

    def __init__(self, name: str = "sentences", dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.model = f"{name}/{dimensions}"
        self.away = False
        self.batches: list[list[str]] = []

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        if self.away:
            raise EmbedderUnavailable("It is away.", model=self.model)
        return super().embed_now(texts, kind)

    def embed_with_passages(self, texts: Sequence[str]) -> tuple[Vectors, list[bytes]]:
        self.batches.append(list(texts))
        return self.embed_now(texts), [self.passages(text) for text in texts]

    def passages(self, text: str) -> bytes:
        """What is kept of the passages of a text."""
        spans = fewer(passages(text))
        if len(spans) < 2:
            return b""
        return packed(super().embed_now([text[start:end] for start, end in spans]))
