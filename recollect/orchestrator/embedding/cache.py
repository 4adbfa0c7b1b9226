"""Vectors that were computed before, by a hash of their text, near at hand."""

from __future__ import annotations

from hashlib import blake2b

from recollect.orchestrator.cache.in_process import InProcessCache
from recollect.orchestrator.embedding.interface import Kind, Pooled
from recollect.orchestrator.embedding.packing import packed, unpacked

DIGEST_BYTES = 16


def digest(text: str, kind: Kind) -> bytes:
    """The name of a text's vector, as a question or as a document."""
    content = text.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=DIGEST_BYTES, person=kind.encode()).digest()


class VectorCache:
    """Least recently used goes first. Touched by the event loop's thread alone."""

    def __init__(self, texts_max: int, dimensions: int) -> None:
        self._kept = InProcessCache(texts_max)
        self._dimensions = dimensions

    @property
    def hits(self) -> int:
        return self._kept.hits

    @property
    def misses(self) -> int:
        return self._kept.misses

    def get(self, key: bytes) -> Pooled | None:
        """What was made of a text; the vector cannot be written to."""
        kept = self._kept.get_one(key)
        return None if kept is None else unpacked(kept, self._dimensions)

    def keep(self, key: bytes, made: Pooled) -> None:
        self._kept.keep_one(key, packed(made))

    def clear(self) -> None:
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)
