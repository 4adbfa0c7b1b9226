"""Expressions over types of tasks mean what Python means by them, and none can be made slow."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.learning.expressions import STEPS_MAX, Expression
from recollect.protocol.errors import InvalidArgument

TYPE_CHARS_MAX = 64
TYPES = ["".join("ab.-_1"[(n * k + k) % 6] for k in range(TYPE_CHARS_MAX)) for n in range(1_000)]

parts = st.sampled_from(
    [*"ab1_", ".", "-", "^", "$", "|", "(", ")", "(?:", "[ab]", "[^a-b_]", "[]a]", r"\d", r"\W"]
)
repeats = st.sampled_from(["", "", r"\.", "*", "+", "?", "*?", "{2}", "{1,2}", "{,1}", "{1,}"])
written = st.lists(st.tuples(parts, repeats).map("".join), max_size=6).map("".join)


@settings(max_examples=600, deadline=None)
@given(written, st.text("ab1_.-", max_size=7))
def test_what_both_understand_they_match_alike(source: str, text: str) -> None:
    try:
        ours = Expression(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = re.compile(source)
    except (InvalidArgument, re.error):
        return
    assert ours.contains(text) == (theirs.search(text) is not None)


@pytest.mark.parametrize(
    ("source", "fitting", "others"),
    [
        ("deploy", ["deploy", "web.deploy.now"], ["deplo", "report"]),
        ("^web$", ["web"], ["web2", "the.web"]),
        (r"^(web|db)\.", ["web.x", "db.y"], ["dbx", "xweb."]),
        ("[a-c]{2,3}9", ["ab9", "xabc9"], ["a9", "ad9"]),
        (r"\d+-\w+$", ["x1-y"], ["x-y", "1-"]),
        ("", ["anything"], []),
        ("x*", ["anything"], []),
    ],
)
def test_the_usual_ones_work(source: str, fitting: list[str], others: list[str]) -> None:
    expression = Expression(source)
    assert [text for text in fitting + others if expression.contains(text)] == fitting


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("(", 0),
        ("ab(c", 2),
        (")", 0),
        ("*", 0),
        ("a|*", 2),
        ("a**", 2),
        ("a{3,2}", 1),
        ("a{x}", 1),
        ("[ab", 0),
        ("[b-a]", 4),
        (r"(a)\1", 3),
        (r"\b", 0),
        ("(?=a)", 1),
        ("(?P<n>a)", 1),
        ("a\\", 1),
        ("a{99999}", 1),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(source: str, position: int) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Expression(source)
    assert refused.value.details == {"field": "task_type", "position": position}
    assert f"position {position}" in refused.value.message


@pytest.mark.parametrize(
    "source",
    [
        "(a+)+$",
        "(a|aa)+$",
        "(a|a)*$",
        "(.*a){20}",
        "(.*)*" * 20 + "x",
        "([ab.-]+)*1$",
        "[^a]*" * 100,
        "(" * 31 + "a" + ")*" * 31,
        "(a|b)*a(a|b|-){80}",
        "(((){999}){999}){999}",
        "((a{99}){99}){99}",
        "(" * 250 + ")" * 250,
        "." * 499,
    ],
)
def test_none_takes_more_steps_than_its_bound(source: str) -> None:
    """Counted, not timed: over the most types of the greatest length that there may be."""
    try:
        expression = Expression(source)
        for text in TYPES:
            expression.contains(text)
    except InvalidArgument:
        return
    assert expression.steps <= STEPS_MAX
