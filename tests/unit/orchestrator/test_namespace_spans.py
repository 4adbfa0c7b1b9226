"""Spans of namespaces: what they hold is what patterns cover, in the order of texts."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.access.grants import EVERYWHERE, Grant, Grants, covers
from recollect.orchestrator.calls import Call
from recollect.orchestrator.namespaces import EVERYTHING, Span, readable_spans, spans_of

parts = st.text(st.sampled_from("ab2-;!~é\x01\U0010ffff"), min_size=1, max_size=2)
namespaces = st.builds(
    lambda first, rest: ":".join([first, *rest]),
    st.sampled_from(["user", "app"]),
    st.lists(parts, min_size=1, max_size=3),
)
prefixes = st.sampled_from(["user", "app"]) | namespaces


@given(patterns=st.lists(prefixes, max_size=4), namespace=namespaces)
def test_a_namespace_is_in_one_span_exactly_if_a_pattern_covers_it(
    patterns: list[str], namespace: str
) -> None:
    spans = spans_of(patterns)
    holding = [span for span in spans if span.low <= namespace < span.high]
    assert len(holding) == any(covers(pattern, namespace) for pattern in patterns)


@given(patterns=st.lists(prefixes, max_size=6))
def test_spans_are_in_order_and_do_not_overlap(patterns: list[str]) -> None:
    spans = spans_of(patterns)
    assert all(span.low < span.high for span in spans)
    assert all(one.high <= next_one.low for one, next_one in pairwise(spans))


@given(
    grants=st.lists(prefixes | st.just(EVERYWHERE), max_size=4),
    prefix=prefixes | st.none(),
    namespace=namespaces,
)
def test_what_is_readable_is_what_is_granted_within_what_is_asked_for(
    grants: list[str], prefix: str | None, namespace: str
) -> None:
    call = Call(
        operation="x",
        now_us=0,
        deadline_us=0,
        identity="i",
        grants=Grants(tuple(Grant(pattern, "read") for pattern in grants)),
        refusals=[],
    )
    spans = readable_spans(call, prefix)
    asked = prefix is None or covers(prefix, namespace)
    expected = asked and call.grants.allows(namespace, "read")
    assert any(span.low <= namespace < span.high for span in spans) is expected
    assert bool(call.refusals) is (not spans)


def test_others_stand_between_a_namespace_and_what_is_below_it() -> None:
    assert spans_of(["user:alice"]) == [
        Span("user:alice", "user:alice\x01"),
        Span("user:alice:", "user:alice;"),
    ]
    assert EVERYTHING.low < "app:a" < "user:\U0010ffff" < EVERYTHING.high
