"""What an embedder offers."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors of one length."""

    model: str
    """Name and settings; vectors of different models are never compared."""
    dimensions: int
    inline: bool
    """Whether a single text is embedded so fast that it belongs on the event loop."""

    def embed_now(self, texts: Sequence[str]) -> Vectors:
        """One row a text, computed in the caller's thread."""
        ...

    def embed(self, texts: Sequence[str]) -> Awaitable[Vectors]:
        """One row a text, computed off the event loop."""
        ...
