"""What an embedder offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
VECTOR_ITEM_BYTES = 4

Kind = Literal["document", "query"]
"""What a text is; some models want to be told."""


class Pooled(NamedTuple):
    """What was made of one text."""

    vector: Vectors
    passages: bytes = b""
    """Vectors of its passages, as they are kept; nothing if it is a single one."""


class Embedder(Protocol):
    """Turns texts into unit vectors of one length."""

    model: str
    """Name, and all that changes vectors; vectors of different models are never compared."""
    dimensions: int
    inline: bool
    """Whether a single text is embedded so fast that it belongs on the event loop."""

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        """One row a text, computed in the caller's thread; several threads may call at once."""
        ...

    def close(self) -> None:
        """Let go of what it holds; it is not used afterwards."""
        ...


@runtime_checkable
class PassageEmbedder(Embedder, Protocol):
    """An embedder that also gives vectors of the passages of a document. It is never inline."""

    def embed_with_passages(self, texts: Sequence[str]) -> tuple[Vectors, list[bytes]]:
        """The same rows as for documents, and what is kept of the passages of each text."""
        ...
