"""Which words say what was done."""

from __future__ import annotations

import pytest

from recollect.orchestrator.learning.words import denies, names_one_thing, split, stem


@pytest.mark.parametrize(
    "forms",
    [
        "check checks checked checking Checks",
        "skip skips skipped skipping",
        "release releases released releasing",
        "batch batches batched",
        "retry retries retried",
        "run running runs",
        "add adds added adding",
        "roll rolled rolling",
        "pass passes passed",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len(set(map(stem, forms.split()))) == 1


@pytest.mark.parametrize("word", ["status", "redis", "string", "feed", "red", "analysis", "log"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    "word", ["42", "3.5", "v2.17.0", "2026-10-02", "OPS-4412", "502s", "7f9c4d", "pod-7f9c4d-x2"]
)
def test_numbers_and_ids_name_one_thing(word: str) -> None:
    assert split(word) == [word]
    assert names_one_thing(word)


@pytest.mark.parametrize("word", ["s3", "k8s", "us-east-1", "p99", "backup", "lock_timeout"])
def test_names_with_a_digit_or_two_do_not(word: str) -> None:
    assert not names_one_thing(word)


def test_denial_is_known_in_all_its_forms() -> None:
    for word in ("not", "never", "without", "didn't", "hasn\u2019t", "skipped", "forgot"):
        assert denies(stem(word)), word
    assert not denies(stem("backup"))
