"""An embedder that cannot be had just now: its vectors are there, but it makes no new ones."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.embedding.interface import Kind, Vectors
from recollect.protocol.errors import EmbedderUnavailable


class AbsentEmbedder:
    """Stands in for a model whose files are gone; what it would embed waits for them."""

    inline = False

    def __init__(self, model: str, dimensions: int, reason: str) -> None:
        self.model = model
        self.dimensions = dimensions
        self._reason = reason

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        raise EmbedderUnavailable(self._reason, model=self.model)

    def close(self) -> None:
        """There is nothing to let go of."""
