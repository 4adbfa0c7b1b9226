"""Answers for models: compact, marked, and within their tokens."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.gateway.mcp.answers import NOTICE, for_model
from recollect.gateway.mcp.fitting import COUNTER, NOTHING_FITS, fit
from recollect.protocol.operations import AddMemory, GetMemory, Recall

TOKENS_MIN = 500
"""The least that the settings allow."""

TEXTS = st.text(max_size=200) | st.text(alphabet='\n"\\<x 数👍', max_size=400).map(
    lambda text: text * 8
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=12), inner, max_size=8)
    ),
    max_leaves=12,
)
RECORDS = st.fixed_dictionaries(
    {"id": st.text("0123456789abcdef-", min_size=36, max_size=36), "content": TEXTS},
    optional={
        "metadata": JSON,
        "value": JSON,
        "trust": st.floats(0, 1),
        "tags": st.lists(TEXTS, max_size=6),
        "neighbours": st.lists(st.fixed_dictionaries({"content": TEXTS}), max_size=5),
    },
)
ANSWERS = st.fixed_dictionaries(
    {"status": st.just("success")},
    optional={
        "results": st.lists(RECORDS, max_size=12),
        "events": st.lists(JSON, max_size=12),
        "memory": RECORDS,
        "state": st.dictionaries(st.text(max_size=20), JSON, max_size=12),
        "context": TEXTS,
        "count": st.integers(0, 40),
        "cursor": st.text("abcdef", min_size=20, max_size=40),
    },
)


def memory(**fields: Any) -> dict[str, Any]:
    return {"id": "m1", "content": "tea", "trust": 1.0, "source": "log", **fields}


def found(*contents: str) -> dict[str, Any]:
    results = [memory(id=f"m{n}", content=text) for n, text in enumerate(contents)]
    return {"status": "success", "results": results, "count": len(results), "cursor": "on"}


def test_what_only_programs_need_is_left_out() -> None:
    answer = {
        "status": "success",
        "seq": 9,
        "results": [memory(stability_s=86400.0, key=None, tags=[], metadata={}, score=0.123456)],
        "cursor": None,
    }
    assert for_model(answer, Recall.spec) == {
        "notice": NOTICE,
        "status": "success",
        "results": [memory(score=0.123)],
    }


def test_what_is_the_callers_own_stays_as_it_is() -> None:
    own: dict[str, Any] = {"a": None, "seq": 1, "share": 0.123456, "empty": []}
    answer = {"status": "success", "memory": memory(metadata=own, value=own)}
    shown = for_model(answer, GetMemory.spec)["memory"]
    assert shown["metadata"] == shown["value"] == own


def test_a_write_repeats_nothing_and_needs_no_notice() -> None:
    assert for_model({"status": "success", "memory_id": "m1", "seq": 3}, AddMemory.spec) == {
        "status": "success",
        "memory_id": "m1",
    }


def test_an_empty_list_of_results_is_an_answer() -> None:
    assert for_model({"status": "success", "results": []}, Recall.spec)["results"] == []


def test_what_fits_is_not_touched() -> None:
    answer = found("tea", "coffee")
    fitted = fit(answer, TOKENS_MIN, "")
    assert fitted.answer is answer
    assert fitted.list_name is None


def test_records_that_do_not_fit_are_left_out_whole_from_the_end() -> None:
    answer = found(*(f"{n} " + "word " * 100 for n in range(20)))
    fitted = fit(answer, 1000, "Ask narrower.")
    shown = fitted.answer["results"]
    assert 2 <= len(shown) < 20
    assert shown == answer["results"][: len(shown)]
    assert fitted.answer["count"] == fitted.shown == len(shown)
    assert fitted.answer["cut"] == f"{len(shown)} of 20 results fit. Ask narrower."
    # It would lead past those that are not shown.
    assert "cursor" not in fitted.answer


def test_one_record_that_is_too_long_ends_early_and_says_where_all_of_it_is() -> None:
    answer = {"status": "success", "memory": memory(content="word " * 10_000)}
    fitted = fit(answer, 1000, "")
    content = fitted.answer["memory"]["content"]
    assert content.endswith(" […]")
    assert 500 < COUNTER.count(content) < 1000
    assert "memory://ID" in fitted.answer["cut"]
    assert fitted.answer["memory"]["id"] == "m1"


def test_a_large_object_is_shown_as_the_beginning_of_its_text() -> None:
    state = {f"key{n}": n for n in range(5000)}
    fitted = fit({"status": "success", "state": state}, TOKENS_MIN, "")
    assert fitted.answer["state"].startswith('{"key0":0,"key1":1')


def test_what_cannot_be_shown_at_all_says_so() -> None:
    many = {f"field{n}": "x" for n in range(2000)}
    assert fit({"status": "success", **many}, TOKENS_MIN, "").answer == {
        "status": "success",
        "cut": NOTHING_FITS,
    }


@settings(deadline=None, max_examples=50)
@given(answer=ANSWERS, tokens_max=st.integers(TOKENS_MIN, 4000))
def test_an_answer_never_takes_more_than_its_tokens(
    answer: dict[str, Any], tokens_max: int
) -> None:
    before = msgspec.json.encode(answer)
    fitted = fit(answer, tokens_max, "For the rest ask narrower, or for fewer at a time.")
    assert COUNTER.count(fitted.text) <= tokens_max
    assert msgspec.json.decode(fitted.text) == msgspec.json.decode(
        msgspec.json.encode(fitted.answer)
    )
    assert msgspec.json.encode(answer) == before, "what was given is not changed"
    if fitted.answer is not answer:
        assert fitted.answer["cut"]
