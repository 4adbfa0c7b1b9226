"""The text that a JSON value is found by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.memories.value_texts import SCALARS_LISTED_MAX, text_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("  ", "key"),
        ("", "key"),
        (None, "key"),
        ([], "key"),
        ({}, "key"),
        ({"a": None, "b": [None, " "]}, "key"),
        (42, "key: 42"),
        (True, "key: true"),
        (["a", 1, None], "key: a, 1"),
        ({"name": "vim", "since": 1991}, "name: vim; since: 1991"),
        ({"a": {"b": {"c": 0.5}}}, "a.b.c: 0.5"),
        ({"a": [{"b": 1}, {"b": 2}]}, "a.b: 1; a.b: 2"),
    ],
)
def test_a_value_says_what_it_holds(value: Any, text: str) -> None:
    assert text_of(value, "key", chars_max=1_000) == text


@given(value=values, chars_max=st.integers(1, 50))
def test_the_text_is_never_empty_and_never_too_long(value: Any, chars_max: int) -> None:
    assert 1 <= len(text_of(value, "key", chars_max=chars_max)) <= chars_max


def test_of_a_long_list_only_the_first_are_named() -> None:
    text = text_of({"n": list(range(1_000))}, "key", chars_max=10_000)
    assert text.endswith(f" {SCALARS_LISTED_MAX - 1}")
