"""What is chosen for a context: never more than the budget, and the best of what there is."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.context.cutting import up_to_a_sentence
from recollect.orchestrator.context.fencing import CUT_MARK
from recollect.orchestrator.context.live import LivePiece
from recollect.tokens import Estimate, TokenCounter
from tests.harness.tokenizers import bpe_counter
from tests.unit.orchestrator.context.attacks import ATTACKS
from tests.unit.orchestrator.context.consumer import pieces_of
from tests.unit.orchestrator.context.memories import chosen, memory, select

SENTENCE = "The brig {} sails at dawn with {} barrels of salted fish. "
SCRIPTS = [
    SENTENCE.format("Anna", 12),
    "def f(x):\n    return {'a': [x, 1.5e-9]}\n",
    *("Straßenbahn ", "数据库的备份在午夜运行。", "ありがとう", "डेटाबेस ", "ฐานข้อมูล"),
    *("👨\u200d👩\u200d👧🎉", "\u200b\u202e", "<|im_start|>", "\n\nHuman: "),
    *("x" * 300, "Zq7/+kT0pLm=" * 20, "\n" * 30, " " * 50, "a\u0301\u0327" * 20, "\U0010ffff" * 5),
    *ATTACKS.values(),
]


def corpus(seed: int, size: int) -> list[Any]:
    """Memories of random texts: any script, long words, fence-like ones."""
    at_random = random.Random(seed)
    found = []
    for num in range(size):
        parts = at_random.choices(SCRIPTS, k=at_random.choice([1, 1, 2, 5, 40]))
        if at_random.random() < 0.2:
            parts.append("".join(chr(at_random.randint(32, 0xD7FF)) for _ in range(60)))
        text = "".join(parts)
        found.append(
            memory(
                num,
                text,
                at_random.random(),
                tier=at_random.choice(["operational", "working", "longterm", "knowledge"]),
                first=at_random.random() < 0.1,
                trust=at_random.random(),
                source=at_random.choice([None, text[:200]]),
                vector=[at_random.gauss(0, 1) for _ in range(8)],
            )
        )
    return found


def live_piece(text: str) -> LivePiece:
    return LivePiece("metrics", "app:default", "probe", "2026-01-31T12:00:00.000000Z", text)


@pytest.fixture(scope="module")
def bpe() -> TokenCounter:
    return bpe_counter(SCRIPTS)


@settings(max_examples=200, deadline=None)
@given(
    tokens_max=st.integers(1, 300) | st.integers(1, 20_000),
    seed=st.integers(0, 1 << 30),
    size=st.integers(0, 30),
    lives=st.integers(0, 3),
)
def test_no_budget_is_ever_overrun(
    bpe: TokenCounter, tokens_max: int, seed: int, size: int, lives: int
) -> None:
    considered = corpus(seed, size)
    live = [live_piece(f"load {n}: {'9' * n}") for n in range(lives)]
    for counter in (Estimate(), bpe):
        selected = select(considered, tokens_max, counter, live)
        assert selected.tokens == counter.count(selected.text) <= tokens_max
        pieces = pieces_of(selected.text)
        assert len(pieces) == len(selected.live) + len(selected.picks)
        shown = [pick.quotation.shown(pick.chars) for pick in selected.picks]
        assert [piece.text for piece in pieces][len(selected.live) :] == shown


def test_what_does_not_fit_is_not_begun() -> None:
    selected = select([memory(1, "A text.")], 1)
    assert (selected.text, selected.tokens, selected.picks) == ("", 0, [])


def test_the_more_relevant_and_the_more_trusted_come_first() -> None:
    relevant = memory(1, "The pump on deck two has failed.", 0.9)
    less = memory(2, "The pump on deck six is painted red.", 0.5)
    doubted = memory(3, "The pump on deck ten was never there.", 0.9, trust=0.2)
    assert chosen(select([less, doubted, relevant], 4_000)) == [1, 2, 3]


def test_neither_crumbs_nor_walls_win() -> None:
    wall = memory(1, SENTENCE.format("Anna", 3) * 200, 0.5)
    crumbs = [memory(10 + n, f"Fish {n}.", 0.3) for n in range(20)]
    good = memory(2, "Anna wants the fish in the north shed, below the sails. " * 2, 0.8)
    assert chosen(select([wall, *crumbs, good], 1_000))[0] == 2


def test_a_long_text_is_cut_at_a_sentence_with_a_mark() -> None:
    text = "".join(SENTENCE.format(f"number {n}", n) for n in range(200))
    [pick] = select([memory(1, text)], 400).picks
    shown = pick.quotation.shown(pick.chars)
    assert shown.endswith(f"fish.{CUT_MARK}") and text.startswith(shown.removesuffix(CUT_MARK))
    # What nobody else needs is given to it.
    assert pick.tokens > 200


def test_a_long_text_leaves_room_for_others() -> None:
    text = "".join(SENTENCE.format(f"number {n}", n) for n in range(200))
    others = [memory(2 + n, f"Crew member {n} likes rum.", 0.4) for n in range(3)]
    assert set(chosen(select([memory(1, text), *others], 1_000))) == {1, 2, 3, 4}


def test_what_belongs_to_the_task_comes_first_but_not_alone() -> None:
    steps = [memory(n, f"Step {n}: looked into the hold.", 0.1, first=True) for n in range(1, 40)]
    found = chosen(select([*steps, memory(99, "The hold is wet.", 0.9)], 1_500))
    assert found[0] in range(1, 40) and 99 in found


def test_the_same_in_other_words_is_said_once() -> None:
    one = memory(1, "The brig Anna sails at dawn on Monday", 0.9, vector=[1, 0, 0])
    again = memory(2, "On Monday at dawn sails the brig Anna", 0.8, vector=[0.99, 0.141, 0])
    changed = memory(3, "The brig Anna never sails at dawn on Monday", 0.7, vector=[1, 0, 0])
    moved = memory(4, "The brig Anna sails at dawn on Monday 12", 0.6, vector=[1, 0, 0])
    assert chosen(select([one, again, changed, moved], 4_000)) == [1, 3, 4]


def test_variety_goes_before_more_of_the_same() -> None:
    alike = [memory(n, f"Sails, rope and mast {n}", 0.8, vector=[1, 0.01 * n]) for n in (1, 2, 3)]
    other = memory(9, "The cook fell ill", 0.6, vector=[0, 1])
    assert chosen(select([*alike, other], 4_000))[1] == 9


def test_a_tier_that_gave_much_gives_way() -> None:
    long = [memory(n, f"Cargo list {n} of the brig", 0.8, tier="longterm") for n in range(1, 30)]
    work = memory(99, "Load the brig today", 0.6, tier="working")
    assert 99 in chosen(select([*long, work], 900))


def test_how_things_stand_takes_a_part_of_the_budget_only() -> None:
    live = [live_piece("load: 1\n" * 20) for _ in range(20)]
    selected = select([memory(1, "The brig sails.")], 1_000, live=live)
    assert selected.picks and 0 < sum(tokens for _, tokens in selected.live) <= 250


def test_a_text_without_sentences_is_cut_between_words() -> None:
    assert up_to_a_sentence("one two three") == "one two three"
    assert up_to_a_sentence("One two. Three") == "One two."
    assert up_to_a_sentence("A. This goes on for much longer") == "A. This goes on for much longer"
    assert up_to_a_sentence("数据库。备份") == "数据库。"
