"""The embedder without weights gives a text one vector, however it is asked."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.embedding.hashed import FEW_TEXTS_MAX, HashedEmbedder
from recollect.orchestrator.embedding.words import words_of

TEXTS = st.text(max_size=60) | st.text(st.characters(max_codepoint=127), max_size=60)
EMBEDDER = HashedEmbedder()


@given(TEXTS)
def test_words_are_those_of_the_expression_in_any_script(text: str) -> None:
    assert words_of(text) == re.findall(r"\w+", text.lower())


@given(st.lists(TEXTS, min_size=2, max_size=5))
def test_a_vector_is_the_same_alone_and_in_company(texts: list[str]) -> None:
    alone = np.concatenate([EMBEDDER.embed_now([text]) for text in texts])
    assert np.array_equal(alone, EMBEDDER.embed_now(texts))
    assert np.array_equal(alone, EMBEDDER.embed_now(FEW_TEXTS_MAX * texts)[: len(texts)])


def test_a_vector_has_length_one_unless_there_is_no_word() -> None:
    said, silent = EMBEDDER.embed_now(["The build is green", "…"])
    assert abs(float(np.linalg.norm(said)) - 1) < 1e-6
    assert not silent.any()
