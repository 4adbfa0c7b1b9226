"""Texts summed up in their own sentences."""

from __future__ import annotations

import random

import pytest

from recollect.orchestrator.consolidation.sentences import sentences
from recollect.orchestrator.tiers.summarising import (
    SENTENCE_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    SUMMARY_SENTENCES_MAX,
    summary_of,
)

INCIDENT = (
    "The payment service answered slowly. Somebody made coffee.",
    "The database of the payment service ran out of connections.",
    "The pool of connections of the payment service was raised from 20 to 50.",
    "After the pool was raised the payment service answered fast again. The coffee was good.",
    "The payment service answered slowly.",
)


def test_a_summary_keeps_to_what_its_texts_are_about_and_to_their_order() -> None:
    summary = summary_of(INCIDENT)
    told = sentences(summary)
    assert "coffee" not in summary
    assert 1 < len(told) < 6
    places = [next(at for at, text in enumerate(INCIDENT) if one in text) for one in told]
    assert places == sorted(places)
    assert len(set(told)) == len(told)


def test_the_same_texts_are_always_summed_up_alike() -> None:
    assert len({summary_of(INCIDENT) for _ in range(5)}) == 1


@pytest.mark.parametrize(
    ("texts", "summary"),
    [
        (["One thing", "one thing.", "ONE THING"], "One thing."),
        (["?!", "...", "!!"], "?! ..."),
        (["数据库已满", "数据库已满", "数据库已满"], "数据库已满."),
        (["A list:\n- one\n- two", "a list:", "A LIST:"], "A list: - one. - two."),
    ],
)
def test_strange_texts_are_summed_up_as_well(texts: list[str], summary: str) -> None:
    assert summary_of(texts) == summary


def test_sentences_stay_whole_and_what_is_nearly_the_same_is_not_all_of_it() -> None:
    texts = [
        f"Sprint {n} began with planning the work of Dr. Ash on the billing module. "
        f"The billing module supports invoices in {currency}."
        for n, currency in enumerate(("EUR", "USD", "GBP", "JPY", "CHF", "SEK"))
    ]
    summary = summary_of(texts)
    assert "began with planning the work of Dr. Ash on the billing module." in summary
    assert "supports invoices" in summary
    assert set(sentences(summary)) <= {one for text in texts for one in sentences(text)}


def test_long_texts_are_cut_and_say_so() -> None:
    summary = summary_of(["word " * 5_000, "x" * 20_000, "A short one."])
    assert len(summary) <= SUMMARY_CHARS_MAX
    assert "…" in summary_of(["word " * 5_000] * 3)
    assert summary.count("word") * len("word ") <= SENTENCE_CHARS_MAX


def test_a_summary_is_never_empty_and_never_too_long() -> None:
    chance = random.Random(7)
    for _ in range(30):
        texts = [
            ". ".join(
                " ".join(chance.choice("abcdefgh") * chance.randrange(1, 9) for _ in range(6))
                for _ in range(chance.randrange(1, 40))
            )
            for _ in range(chance.randrange(3, 21))
        ]
        summary = summary_of(texts)
        assert 0 < len(summary) <= SUMMARY_CHARS_MAX
        assert len(sentences(summary)) <= SUMMARY_SENTENCES_MAX
