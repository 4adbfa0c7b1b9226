"""What counts as saying the same, and what is kept in view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.config.settings import TrustSettings
from recollect.orchestrator.calls import Call
from recollect.orchestrator.trust import echoes
from recollect.orchestrator.trust.echoes import Echoes, View, mark_of, said

WORDS = st.lists(
    st.text("abcdefghij äß月ÉΣ0123456789-'(", min_size=1, max_size=8).filter(str.strip),
    min_size=1,
    max_size=12,
)
CASES: list[Callable[[str], str]] = [str.strip, str.upper, str.lower]
BLANKS = st.text(" \t\n\r\u00a0", min_size=1, max_size=5)


@settings(max_examples=300, deadline=None)
@given(WORDS, st.data())
def test_any_spacing_case_and_stop_says_the_same(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    gaps = data.draw(st.lists(BLANKS, min_size=len(words), max_size=len(words)))
    spaced = "".join(f"{gap}{word}" for gap, word in zip(gaps, words, strict=True))
    stop = data.draw(st.sampled_from(["", ".", "!", "...", " .", "\n"]))
    case = data.draw(st.sampled_from(CASES))
    other = case(spaced) + stop
    if case(text).casefold() != text.casefold():
        return  # a few letters lose something in another case
    assert said(other) == said(text)
    assert mark_of(other) == mark_of(text)


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS)
def test_other_words_say_something_else(one: list[str], other: list[str]) -> None:
    left, right = " ".join(one), " ".join(other)
    plain = [" ".join(text.split()).casefold().rstrip(".!… ") for text in (left, right)]
    assert (said(left) == said(right)) == (plain[0] == plain[1])
    assert said(left) != said(f"{left} {right}?")


def call(agent: str | None, now_us: int = 0) -> Call:
    return Call("get_memory", now_us, now_us, "local", agent=agent)


def answer(name: str) -> dict[str, Any]:
    return {"status": "success", "memory": {"id": name, "content": f"Text of {name}"}}


def test_what_is_kept_is_bounded_by_agent_and_in_all() -> None:
    kept = Echoes(TrustSettings(echoes_kept_max=4), None)
    for number in range(100):
        kept.served(call("busy"), answer(f"m{number}"))
    assert len(kept._agents["local", "busy"]) == 4
    for number in range(echoes.AGENTS_MAX + 50):
        kept.served(call(f"agent-{number}"), answer("m"))
    assert len(kept._agents) == echoes.AGENTS_MAX
    kept.served(call(None), answer("m"))
    assert len(kept._agents) == echoes.AGENTS_MAX


def test_a_text_that_is_no_longer_at_hand_is_let_go() -> None:
    at_hand = {"a": "Text of a"}
    kept = Echoes(TrustSettings(), at_hand.get)
    for name in ("a", "b"):
        kept.served(call("planner"), answer(name))
    view = kept._agents["local", "planner"]
    view.sort_in(at_hand.get, 0)
    assert view.alike({mark_of("Text of a"), mark_of("Text of b")}, 0) == ["a"]
    at_hand.clear()
    view.sort_in(at_hand.get, 0)
    assert view.alike({mark_of("text  of a.")}, 0) == ["a"]


SERVED = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 20)), max_size=40)


@settings(max_examples=200, deadline=None)
@given(SERVED, st.integers(1, 6), st.integers(0, 20))
def test_a_view_holds_the_last_of_what_was_served(
    served: list[tuple[str, int]], kept_max: int, since_us: int
) -> None:
    view = View(kept_max)
    expected: dict[str, int] = {}
    for name, at_us in served:
        view.append((name, at_us, mark_of(f"Text of {name}")))
        view.sort_in(None, -1)
        expected.pop(name, None)
        expected[name] = at_us
        while len(expected) > kept_max:
            del expected[next(iter(expected))]
    for name in "abcdefgh":
        found = view.alike({mark_of(f"text of {name}")}, since_us)
        assert found == [name] * (expected.get(name, -1) >= since_us)


def test_a_long_text_is_the_same_to_the_letter_or_not_at_all() -> None:
    long = "word " * echoes.TEXT_CHARS_MAX
    assert mark_of(long) != mark_of(long.upper())
    assert mark_of(long) == mark_of("word " * echoes.TEXT_CHARS_MAX)
