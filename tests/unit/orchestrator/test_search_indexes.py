"""The vector index against brute force, the embedder, and words that could be taken for syntax."""

from __future__ import annotations

import threading

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.search import vectors as vectors_module
from recollect.orchestrator.search.lexical import match_expression
from recollect.orchestrator.search.vectors import VectorIndex

DIMENSIONS = 8
steps = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.integers(1, 12), st.integers(0, 2**31)),
    max_size=40,
)


def unit(seed: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


@settings(max_examples=200, deadline=None)
@given(steps, st.integers(0, 2**31), st.sets(st.integers(1, 12)))
def test_search_agrees_with_brute_force_after_any_changes(
    changes: list[tuple[str, int, int]], query_seed: int, allowed: set[int]
) -> None:
    index = VectorIndex(DIMENSIONS)
    model: dict[int, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    for kind, num, seed in changes:
        if kind == "put":
            model[num] = unit(seed)
            index.put(num, unit(seed))
        else:
            model.pop(num, None)
            index.remove(num)
    query = unit(query_seed)
    for chosen in (None, allowed):
        wanted = sorted(
            (num for num in model if chosen is None or num in chosen),
            key=lambda num: -float(model[num] @ query),
        )[:5]
        numbers = None if chosen is None else np.array(sorted(chosen), dtype=np.int64)
        found = index.search(query, 5, numbers)
        assert sorted(num for num, _ in found) == sorted(wanted)
        assert [score for _, score in found] == pytest.approx(
            [float(model[num] @ query) for num in wanted], abs=1e-5
        )
    assert len(index) == len(model)


def test_tombstones_are_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "TOMBSTONES_MIN", 10)
    index = VectorIndex(DIMENSIONS)
    for num in range(100):
        index.put(num, unit(num))
    index.search(unit(0), 1)
    for num in range(80):
        index.remove(num)
    found = index.search(unit(90), 100)
    assert {num for num, _ in found} == set(range(80, 100))
    assert index._index.ntotal == 20


def test_notes_stay_bounded_when_nobody_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "NOTES_MAX", 100)
    index = VectorIndex(DIMENSIONS)
    for num in range(1000):
        index.put(num, unit(num))
    assert len(index._notes) <= 101
    assert len(index.search(unit(0), 1000)) == 1000


def test_searches_and_changes_at_once_harm_nothing() -> None:
    index = VectorIndex(DIMENSIONS)
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            while not done.is_set():
                for num, score in index.search(unit(1), 10):
                    assert 0 <= num < 3000
                    assert -1.01 <= score <= 1.01
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for num in range(3000):
        index.put(num, unit(num))
        if num % 3 == 0:
            index.remove(num // 2)
    done.set()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_the_embedder_is_deterministic_and_alike_texts_are_near() -> None:
    texts = ["database connection pool", "connections to databases", "a walk in the woods", "!?"]
    one, two = HashedEmbedder(256), HashedEmbedder(256)
    vectors = one.embed_now(texts)
    assert np.array_equal(vectors, two.embed_now(texts))
    assert np.array_equal(vectors[1:2], one.embed_now([texts[1]]))
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert not vectors[3].any()


@given(st.text(max_size=200))
def test_no_text_is_ever_an_error_of_syntax(text: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = 'porter unicode61')")
    expression = match_expression(text)
    if expression is not None:
        connection.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()


@pytest.mark.parametrize(
    "query", ['"', "NEAR(a b)", "a AND OR NOT", "col:umn", "a*", "^x", "日本語", "🎈", "x" * 10_000]
)
def test_operators_and_odd_text_are_words_or_nothing(query: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (content)")
    expression = match_expression(query)
    if expression is not None:
        assert connection.execute("SELECT 1 FROM t WHERE t MATCH ?", (expression,)).fetchall() == []
