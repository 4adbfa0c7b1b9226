"""Vectors that were computed before, by a hash of their text.

A vector is kept as bytes, not as an array: a row of a micro-batch would keep the whole batch alive,
bytes cost a third less overhead, and an array over bytes cannot be written to.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

import numpy as np

from recollect.orchestrator.embedding.interface import Kind, Pooled

DIGEST_BYTES = 16


def digest(text: str, kind: Kind) -> bytes:
    """The name of a text's vector, as a question or as a document."""
    content = text.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=DIGEST_BYTES, person=kind.encode()).digest()


class VectorCache:
    """Least recently used goes first. Touched by the event loop's thread alone."""

    def __init__(self, texts_max: int) -> None:
        self._rows: OrderedDict[bytes, tuple[bytes, bytes]] = OrderedDict()
        self._texts_max = texts_max
        self.hits = 0
        self.misses = 0

    def get(self, key: bytes) -> Pooled | None:
        """What was made of a text; the vector cannot be written to."""
        row = self._rows.get(key)
        if row is None:
            self.misses += 1
            return None
        self._rows.move_to_end(key)
        self.hits += 1
        vector, passages = row
        return Pooled(np.frombuffer(vector, np.float32), passages)

    def keep(self, key: bytes, made: Pooled) -> None:
        if self._texts_max <= 0:
            return
        self._rows[key] = (made.vector.tobytes(), made.passages)
        self._rows.move_to_end(key)
        if len(self._rows) > self._texts_max:
            self._rows.popitem(last=False)

    def clear(self) -> None:
        self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)
