"""Counting tokens: by an estimate that is rather too high, and by real vocabularies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from recollect.orchestrator.context.vocabularies import FileCounter, TokenizerUnusable, counter_of
from recollect.tokens import Estimate, TokenCounter
from tests.harness.tokenizers import bpe_counter, bpe_file

# Each text with the most tokens that any of o200k_base, cl100k_base, the vocabulary of Claude 2 and
# that of DeepSeek 3 makes of it.
MEASURED: dict[str, tuple[str, int]] = {
    kind: (measured["text"], measured["tokens"])
    for kind, measured in json.loads(
        Path(__file__).with_name("measured_tokens.json").read_text("utf-8")
    ).items()
}
WASTE_MAX = 3.0
TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from([" ", "\n", "word", "Word", "数据", "👍🏽", "x" * 40, "9", "-", "é"]),
    max_size=30,
).map("".join)


@pytest.mark.parametrize("kind", MEASURED)
def test_the_estimate_is_never_below_what_vocabularies_count(kind: str) -> None:
    text, most = MEASURED[kind]
    assert most <= Estimate().count(text) <= WASTE_MAX * most


@pytest.fixture(scope="module")
def bpe() -> TokenCounter:
    return bpe_counter(text for text, _ in MEASURED.values())


@given(TEXTS, st.integers(0, 40))
def test_a_text_is_cut_to_its_longest_beginning_up_to_a_word(
    bpe: TokenCounter, text: str, tokens_max: int
) -> None:
    for counter in (Estimate(), bpe):
        cut = counter.cut(text, tokens_max)
        assert text.startswith(cut)
        assert counter.count(cut) <= tokens_max
        assert cut == text or counter.count(text) > tokens_max
    # What the estimate cuts off does not fit: neither the next word nor, of a single one, more.
    cut = Estimate().cut(text, tokens_max)
    if cut != text:
        rest = text[len(cut) :].lstrip()
        blanks = text[len(cut) : len(text) - len(rest)] if cut else ""
        more = cut + (blanks + rest.split()[0] if rest.split() else text[len(cut) :])
        assert Estimate().count(more) > tokens_max


def test_a_word_is_not_parted_unless_it_is_alone() -> None:
    assert Estimate().cut("hello brave new world of things", 5) == "hello brave new"
    assert Estimate().cut("qxzkvjqxzkvj", 4) == "qxzk"
    assert Estimate().cut("hello", 0) == ""


def test_a_vocabulary_counts_what_it_would_make_of_a_text(tmp_path: Path) -> None:
    path = bpe_file([text for text, _ in MEASURED.values()], tmp_path)
    counter = counter_of(str(path))
    tokenizer = Tokenizer.from_file(str(path))
    for text, _ in MEASURED.values():
        assert counter.count(text) == len(tokenizer.encode(text).ids)
    assert counter.name.startswith("tokenizer.json:")
    # A text that spells a token of control is a text.
    assert counter.count("<|endoftext|>") > 1


def test_what_a_vocabulary_does_not_know_counts_by_its_bytes(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "tide": 2}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = FileCounter(tmp_path / "tokenizer.json")
    assert counter.count("The tide") == 2
    assert counter.count("The 数据库") == 1 + 9
    assert counter.cut("The tide 数据库 tide", 5) == "The tide"


def test_a_tokenizer_that_cannot_be_used_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TokenizerUnusable, match="nor a file that can be read"):
        counter_of(str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(TokenizerUnusable, match=r"no tokenizer\.json"):
        counter_of(str(tmp_path / "bad.json"))
    with pytest.raises(TokenizerUnusable, match="known are o200k_base"):
        counter_of("tiktoken:klingon")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(TokenizerUnusable, match="pip install tiktoken"):
        counter_of("tiktoken:o200k_base")


def test_without_a_vocabulary_on_disk_it_is_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert counter_of("auto").name == "estimate"
    assert counter_of("estimate").name == "estimate"
