"""Search by words on PostgreSQL: what holds of FTS5 holds there too, by the same tests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recollect.orchestrator.memories.words_rebuilding import PAGE_CHARS, PROPERTY, ensure_words
from recollect.orchestrator.search.lexical import TsvectorIndex, lexical_text
from recollect.orchestrator.search.lexical.frequencies import Frequencies
from recollect.orchestrator.search.lexical.query import terms_of
from recollect.orchestrator.search.lexical.tsvector import LEARN_CHARS_MAX, LEARN_TEXTS_MAX
from recollect.orchestrator.search.lexical.tsvector_source import TsvectorSource, count_words
from recollect.orchestrator.search.lexical.tsvector_text import PLACES_OF_WORD_MAX, vector_of
from recollect.orchestrator.storage.interface import Params, Row
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from recollect.orchestrator.storage.properties import set_property
from recollect.protocol.operations import BatchAddMemories, SearchMemory
from tests.harness.postgres import new_database
from tests.harness.worlds import World
from tests.unit.orchestrator.search.test_lexical import (
    TOKENS,
    Store,
    spare,
    store,
    test_a_caller_with_few_of_many_matches_gets_all_of_them,
    test_a_changed_text_is_weighed_by_its_new_length,
    test_a_quoted_phrase_asks_for_these_words_in_this_order,
    test_a_star_asks_for_words_that_begin_so,
    test_a_very_long_query_is_bounded_and_still_finds,
    test_an_index_can_be_made_anew,
    test_any_part_of_a_text_without_gaps_finds_it,
    test_common_words_count_only_if_nothing_else_is_asked,
    test_common_words_still_order_what_the_rare_ones_found,
    test_matches_answer_several_questions,
    test_memories_with_all_of_several_common_words_come_first,
    test_no_text_is_ever_an_error_and_each_is_found_by_itself,
    test_odd_words_are_found_whole_and_by_their_parts,
    test_operators_and_odd_text_are_words_or_nothing,
    test_pages_neither_repeat_nor_lose_anything_when_the_budget_is_spent,
    test_stems_accents_and_capitals_do_not_matter,
    test_the_ranking_agrees_with_the_formula_after_any_changes,
    test_the_whole_name_counts_more_than_its_parts,
    test_what_surrounds_a_memory_is_found_too,
    test_without_a_star_the_last_word_is_whole,
)

__all__ = [
    "spare",
    "store",
    "test_a_caller_with_few_of_many_matches_gets_all_of_them",
    "test_a_changed_text_is_weighed_by_its_new_length",
    "test_a_quoted_phrase_asks_for_these_words_in_this_order",
    "test_a_star_asks_for_words_that_begin_so",
    "test_a_very_long_query_is_bounded_and_still_finds",
    "test_an_index_can_be_made_anew",
    "test_any_part_of_a_text_without_gaps_finds_it",
    "test_common_words_count_only_if_nothing_else_is_asked",
    "test_common_words_still_order_what_the_rare_ones_found",
    "test_matches_answer_several_questions",
    "test_memories_with_all_of_several_common_words_come_first",
    "test_no_text_is_ever_an_error_and_each_is_found_by_itself",
    "test_odd_words_are_found_whole_and_by_their_parts",
    "test_operators_and_odd_text_are_words_or_nothing",
    "test_pages_neither_repeat_nor_lose_anything_when_the_budget_is_spent",
    "test_stems_accents_and_capitals_do_not_matter",
    "test_the_ranking_agrees_with_the_formula_after_any_changes",
    "test_the_whole_name_counts_more_than_its_parts",
    "test_what_surrounds_a_memory_is_found_too",
    "test_without_a_star_the_last_word_is_whole",
]


@pytest.fixture(scope="module")
def module_store() -> Iterator[Store]:
    session = PostgresWriterSession(new_database())
    yield Store(session, TsvectorIndex())
    session.connection.close()


@pytest.mark.parametrize("times", [1, 2, 3, 7, 40, 254, 255])
def test_how_often_a_word_stands_is_read_off_its_rank(store: Store, times: int) -> None:
    store.write({1: "fox " * times + "den", 2: "fox"})
    source = TsvectorSource(store.session, Frequencies(count_words), (2, 2), None, None, 100)
    [fox] = terms_of("fox", TOKENS)
    docs, counts = source.read(fox, 2)
    assert dict(zip(docs.tolist(), counts.tolist(), strict=True)) == {1: times, 2: 1}


def test_a_text_too_long_for_the_server_is_found_by_its_first_words(store: Store) -> None:
    several = " ".join(f"w{n:x}q" for n in range(200_000))
    store.write({1: several, 2: "fox " * 20_000, 3: "y" * 5_000})
    assert store.nums("w10q") == [1]
    assert store.nums("fox") == [2]
    assert store.nums("y" * 5_000) == [3]


def test_places_of_a_word_are_bounded() -> None:
    assert vector_of(["fox"] * 1_000).count(",") == PLACES_OF_WORD_MAX - 1


def test_a_phrase_far_inside_a_text_is_found(store: Store) -> None:
    store.write({1: lexical_text("filler " * 9_000 + "silver heron"), 2: "heron silver"})
    assert store.nums('"silver heron"') == [1]


def test_the_server_hears_of_a_large_batch_again_and_again(store: Store) -> None:
    """It ends a transaction in which nothing is asked of it for some seconds."""
    asked: list[int] = []
    execute = store.session.execute

    def listening(sql: str, params: Params = ()) -> list[Row]:
        if any(isinstance(param, list) for param in params):
            asked.append(sum(len(param) for param in params if isinstance(param, np.ndarray)))
        return list(execute(sql, params))

    store.session.execute = listening
    try:
        short = {n: f"fox{n} den" for n in range(1, 2 * LEARN_TEXTS_MAX + 2)}
        store.write(dict(short))
        half = LEARN_CHARS_MAX // 2 + 1
        store.write({n: f"owl{n} ".ljust(half, "z") for n in range(1_000, 1_003)})
    finally:
        del store.session.execute
    # Numbers and lengths, in two arrays.
    assert asked == [2 * LEARN_TEXTS_MAX, 2 * LEARN_TEXTS_MAX, 2, 2, 2, 2]
    assert store.nums(f"fox{LEARN_TEXTS_MAX}") == [LEARN_TEXTS_MAX]
    assert store.nums("owl1002") == [1_002]
    assert store.nums("den", limit=1_000) == sorted(short, reverse=True)


def test_words_are_made_anew_of_texts_however_long_they_are(tmp_path: Path) -> None:
    world = World(new_database(), tmp_path / "data")
    try:
        draw = random.Random(7)
        filler = " ".join(f"{draw.getrandbits(32):x}" for _ in range(100))
        long = 190 * f"{filler} "
        items = [{"content": f"heron{n} {long}"} for n in range(30)]
        for item in items:
            assert world(BatchAddMemories([item]))["stored"] == 1

        async def rebuild() -> tuple[int, int]:
            await world.storage.write(lambda t: set_property(t, PROPERTY, "another"))
            before = world.storage.describe()["transactions"]
            done = await ensure_words(world.storage, world.orchestrator.parts.lexical)
            return done, world.storage.describe()["transactions"] - before

        done, transactions = world.run(rebuild())
        assert done == len(items)
        # Clearing and noting that it is done are two, and the page behind the last is one.
        assert transactions - 3 >= sum(len(item["content"]) for item in items) / PAGE_CHARS
        found = world(SearchMemory("heron7"))["results"]
        assert found[0]["content"].startswith("heron7 ")
    finally:
        world.close()
