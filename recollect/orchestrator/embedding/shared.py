"""Vectors that this or another orchestrator computed before, in a cache that outlives both.

Asked by the threads that embed, once for a whole micro-batch, before the model is; and told after
the callers are answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from recollect.orchestrator.cache.interface import ByteCache
from recollect.orchestrator.embedding.interface import Pooled
from recollect.orchestrator.embedding.packing import packed, unpacked

MODEL_DIGEST_BYTES = 8


class SharedVectors:
    """The vectors of one model. Its name says all that changes them, so none can be out of date."""

    def __init__(self, cache: ByteCache, model: str, dimensions: int) -> None:
        self._cache = cache
        digest = blake2b(model.encode(), digest_size=MODEL_DIGEST_BYTES).hexdigest()
        self._prefix = f"{digest}:".encode()
        self._dimensions = dimensions

    def get(self, digests: Sequence[bytes]) -> list[Pooled | None]:
        """What is known of some texts by their digests."""
        found = self._cache.get([self._key(digest) for digest in digests])
        return [None if one is None else unpacked(one, self._dimensions) for one in found]

    def keep(self, digests: Sequence[bytes], made: Sequence[Pooled]) -> None:
        keys = map(self._key, digests)
        self._cache.keep(dict(zip(keys, map(packed, made), strict=True)))

    def _key(self, digest: bytes) -> bytes:
        return self._prefix + digest.hex().encode()
