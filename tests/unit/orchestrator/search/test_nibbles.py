"""Codes of four bits: what they find is what is nearest, or they say that they are not sure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from recollect.orchestrator.search.vectors import FaissIndex, bitmaps
from recollect.orchestrator.search.vectors.nibbles import RESTS_MAX, Nibbles, pay

K = 10
WAIT_S = 60.0
Vectors = npt.NDArray[np.float32]


def scattered(rows: int, dimensions: int, seed: int) -> Vectors:
    """Vectors that are not near to any other in particular."""
    made = np.random.default_rng(seed).standard_normal((rows, dimensions), dtype=np.float32)
    unit: Vectors = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def nearest(vectors: Vectors, query: Vectors, among: npt.NDArray[np.int64]) -> set[int]:
    order = np.argsort(-(vectors[among] @ query))[:K]
    return set(among[order].tolist())


@pytest.mark.parametrize("dimensions", [96, 97])
def test_what_is_found_is_nearest_of_what_lives(dimensions: int) -> None:
    vectors, queries = scattered(3_000, dimensions, 1), scattered(50, dimensions, 2)
    nibbles = Nibbles(vectors)
    alive = np.flatnonzero(np.random.default_rng(3).random(3_000) < 0.8)
    bits = bitmaps.of(alive, 3_000)
    sure = 0
    for query in queries:
        for living, among in ((None, np.arange(3_000)), (bits, alive)):
            found = nibbles.search(query, K, vectors, living)
            if found is not None:
                sure += 1
                places, scores = found
                assert set(places.tolist()) == nearest(vectors, query, among)
                assert np.allclose(scores, vectors[places] @ query, atol=1e-5)
    assert sure > len(queries)


def test_what_is_nearly_the_same_is_left_to_who_tells_it_apart() -> None:
    chance = np.random.default_rng(1)
    said = np.repeat(scattered(10, 64, 2), 300, axis=0)
    alike = said + np.float32(0.001) * chance.standard_normal(said.shape, dtype=np.float32)
    assert Nibbles(alike).search(said[0], K, alike, None) is None


def test_after_failures_it_is_tried_less_often_but_not_given_up() -> None:
    vectors, query = scattered(3_000, 96, 1), scattered(1, 96, 2)[0]
    nibbles = Nibbles(vectors)
    nobody = bitmaps.of(np.arange(0), 3_000)
    assert nibbles.search(query, K, vectors, None) is not None
    assert nibbles.search(query, K, vectors, nobody) is None
    found = [nibbles.search(query, K, vectors, None) for _ in range(RESTS_MAX + 1)]
    assert found[0] is None
    assert found[-1] is not None


def test_an_index_of_scattered_vectors_finds_all_that_is_near() -> None:
    vectors = scattered(6_000, 96, 1)
    index = FaissIndex(96, pause_s=0.0)
    nums = np.arange(1, 6_001, dtype=np.int64)
    index.load(nums, nums, vectors)
    index.maintain(WAIT_S)
    assert pay(6_000, 15.0 * 6_100)
    gone = set(range(1, 1_000, 3))
    for num in gone:
        index.remove(num)
    among = np.array([num - 1 for num in nums.tolist() if num not in gone])
    for query in scattered(30, 96, 2):
        found = {num - 1 for num, _ in index.search(query, K)}
        assert found == nearest(vectors, query, among)
    index.close()
