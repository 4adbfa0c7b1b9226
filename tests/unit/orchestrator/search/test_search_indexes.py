"""The light embedder."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.orchestrator.embedding.hashed import HashedEmbedder


def test_the_embedder_is_deterministic_and_alike_texts_are_near() -> None:
    texts = ["database connection pool", "connections to databases", "a walk in the woods", "!?"]
    one, two = HashedEmbedder(256), HashedEmbedder(256)
    vectors = one.embed_now(texts)
    assert np.array_equal(vectors, two.embed_now(texts))
    assert np.array_equal(vectors[1:2], one.embed_now([texts[1]]))
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert not vectors[3].any()
