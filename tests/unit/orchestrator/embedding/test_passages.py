"""Passages of a text: merged, pooled, packed, compared, and brought along with its vector."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Pooled
from recollect.orchestrator.embedding.passages import (
    PASSAGES_MAX,
    PassageSums,
    best_similarities,
    fewer,
    labelled,
    packed,
    similarity,
)
from recollect.orchestrator.embedding.pipeline import Embedding
from tests.harness.sentences import SentenceEmbedder

TWO = "The harbour is frozen today. Nobody has seen the lighthouse keeper."
PATIENCE_S = 20


@pytest.mark.parametrize("count", [1, 2, 6, 7, 11, 12, 13, 32])
def test_neighbours_are_taken_together_evenly(count: int) -> None:
    spans = [(10 * place, 10 * place + 9) for place in range(count)]
    merged = fewer(spans)
    assert len(merged) == min(count, PASSAGES_MAX)
    assert (merged[0][0], merged[-1][1]) == (0, 10 * count - 1)
    sizes = [(end + 1 - start) // 10 for start, end in merged]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


def test_tokens_belong_to_the_passage_they_begin_in() -> None:
    offsets = [(0, 0), (0, 3), (4, 8), (8, 9), (10, 15), (15, 16), (17, 20), (0, 0)]
    assert labelled(offsets, [(0, 9), (10, 16)]).tolist() == [0, 1, 1, 1, 2, 2, 0, 0]
    assert labelled([(0, 4), (4, 6), (6, 9)], [(6, 9)]).tolist() == [0, 0, 1]
    assert labelled([], [(0, 2), (2, 4)]).tolist() == []


def test_sums_go_over_all_windows_of_a_text_and_no_other() -> None:
    sums = PassageSums({1: [(0, 1), (1, 2)]}, 3)
    tokens = np.zeros((2, 6, 3), np.float32)
    tokens[0, :4] = [1, 0, 0]
    tokens[0, 4:] = [0, 1, 0]
    tokens[1, :] = [0, 0, 1]
    sums.add([(1, np.array([1, 1, 1, 1, 2, 2], np.int8)), (0, None)], tokens)
    sums.add([(1, np.array([2, 2, 0], np.int8))], tokens[:1, [4, 4, 0]])
    assert sums.kept(2) == [b"", bytes([127, 0, 0, 0, 127, 0])]


def test_the_nearest_passage_counts_and_its_stored_length_does_not() -> None:
    random = np.random.default_rng(7)
    vectors = random.normal(size=(9, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    question = (vectors[1] + vectors[4]).astype(np.float32)
    question /= np.linalg.norm(question)
    kept = [packed(3 * vectors[:2]), packed(vectors[2:3]), packed(0.1 * vectors[3:])]
    exact = vectors @ question
    expected = [exact[:2].max(), exact[2], exact[3:].max()]
    assert best_similarities(question, kept) == pytest.approx(expected, abs=2e-3)
    assert similarity(question, Pooled(vectors[0], kept[0])) == pytest.approx(exact[1], abs=2e-3)
    assert similarity(question, Pooled(vectors[1], kept[1])) == pytest.approx(exact[1], abs=1e-6)
    assert similarity(question, Pooled(vectors[0])) == pytest.approx(exact[0], abs=1e-6)


def test_a_passage_of_zeros_is_near_to_nothing() -> None:
    kept = packed(np.zeros((2, 4), np.float32))
    assert best_similarities(np.array([1, 0, 0, 0], np.float32), [kept]).tolist() == [0]


async def _embedding(embedder: HashedEmbedder) -> Embedding:
    return Embedding(
        embedder,
        loop=asyncio.get_running_loop(),
        threads=2,
        batch_texts_max=4,
        queue_texts_max=100,
        cache_texts_max=100,
    )


def test_passages_come_with_the_vector_and_are_made_once() -> None:
    embedder = SentenceEmbedder()
    texts = [
        TWO,
        "only one sentence",
        TWO,
        *(f"Number {n} is odd. So is it here." for n in range(9)),
    ]

    async def scenario() -> None:
        embedding = await _embedding(embedder)
        try:
            assert embedding.has_passages
            for _ in range(2):  # the second time, from the cache
                both = await asyncio.gather(
                    embedding.pooled(texts), embedding.pooled_within(texts, PATIENCE_S)
                )
                for pooled in both:
                    for text, made in zip(texts, pooled, strict=True):
                        assert made is not None
                        assert made.passages == embedder.passages(text)
                        assert np.array_equal(made.vector, embedder.embed_now([text])[0])
            vectors = await embedding.documents(texts)
            assert np.array_equal(vectors, embedder.embed_now(texts))
            await embedding.query(TWO)
        finally:
            embedding.close()

    asyncio.run(scenario())
    made = [text for batch in embedder.batches for text in batch]
    assert sorted(made) == sorted(set(texts))


def test_an_embedder_without_passages_gives_vectors_alone() -> None:
    async def scenario() -> None:
        embedding = await _embedding(HashedEmbedder(8))
        try:
            assert not embedding.has_passages
            [made] = await embedding.pooled([TWO])
            assert made.passages == b""
            assert np.array_equal(made.vector, HashedEmbedder(8).embed_now([TWO])[0])
        finally:
            embedding.close()

    asyncio.run(scenario())
