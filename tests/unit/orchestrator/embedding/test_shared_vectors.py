"""Vectors that somebody computed before are not computed again; none of another model is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from recollect.orchestrator.cache.in_process import InProcessCache
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Embedder, Kind, Pooled, Vectors
from recollect.orchestrator.embedding.packing import packed, unpacked
from recollect.orchestrator.embedding.pipeline import Embedding

PATIENCE_S = 20
TEXTS = ["one text", "another text", "a third"]


class Counting(HashedEmbedder):
    """One that is treated as slow, and counts what it is asked."""

    inline = False

    def __init__(self, dimensions: int = 256, model: str | None = None) -> None:
        super().__init__(dimensions)
        self.model = model or self.model
        self.asked: list[str] = []

    def embed_now(self, texts: Sequence[str], kind: Kind = "document") -> Vectors:
        self.asked += texts
        return super().embed_now(texts, kind)


def embedded(embedder: Embedder, shared: InProcessCache, texts: Sequence[str]) -> Vectors:
    """What an orchestrator that has just started makes of some texts, the first as a question."""

    async def main() -> Vectors:
        embedding = Embedding(
            embedder,
            loop=asyncio.get_running_loop(),
            threads=1,
            batch_texts_max=8,
            queue_texts_max=100,
            cache_texts_max=100,
            shared=shared,
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                rows = [await embedding.query(texts[0]), *await embedding.documents(texts)]
                return np.stack(rows)
        finally:
            embedding.close()

    return asyncio.run(main())


def test_the_next_orchestrator_computes_only_what_is_new() -> None:
    shared = InProcessCache(100)
    first, second = Counting(), Counting()
    before = embedded(first, shared, TEXTS)
    assert sorted(first.asked) == sorted([TEXTS[0], *TEXTS])
    after = embedded(second, shared, [*TEXTS, "a new one"])
    assert second.asked == ["a new one"]
    assert np.array_equal(before, after[:-1])


@pytest.mark.parametrize("other", [Counting(64), Counting(model="another")])
def test_another_model_is_given_none_of_them(other: Counting) -> None:
    shared = InProcessCache(100)
    embedded(Counting(), shared, TEXTS)
    rows = embedded(other, shared, TEXTS)
    assert sorted(other.asked) == sorted([TEXTS[0], *TEXTS])
    assert rows.shape[1] == other.dimensions


def test_an_embedder_that_is_quicker_than_a_cache_never_asks_it() -> None:
    shared = InProcessCache(100)
    embedded(HashedEmbedder(), shared, TEXTS)
    assert (len(shared), shared.hits, shared.misses) == (0, 0, 0)


def test_what_is_no_vector_of_the_right_length_is_a_miss() -> None:
    made = Pooled(np.arange(4, dtype=np.float32), b"12345678")
    kept = packed(made)
    found = unpacked(kept, 4)
    assert found is not None
    assert np.array_equal(found.vector, made.vector) and found.passages == made.passages
    assert not found.vector.flags.writeable
    for broken in (b"", kept[:-1], kept[:10], b"\0" + kept[1:], packed(Pooled(made.vector[:3]))):
        assert unpacked(broken, 4) is None
