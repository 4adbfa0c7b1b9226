"""State that is held in memory alone: merged, measured, bounded, let go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.sessions.temporary import TemporaryState

changes = st.dictionaries(
    st.sampled_from("abc"), st.none() | st.text("xü", min_size=1, max_size=4), max_size=3
)
steps = st.lists(st.tuples(st.sampled_from("123"), changes | st.just("forget")), max_size=20)


def test_deltas_are_merged_and_null_removes() -> None:
    state = TemporaryState(10, 1_000)
    state.change("s", {"a": "1", "b": "2"})
    state.change("s", {"a": None, "c": "3", "d": None})
    assert state.of("s") == {"b": "2", "c": "3"}
    assert state.measured_after("s", {"b": None, "e": '"ü"'}) == (2, 5)
    assert state.of("s") == {"b": "2", "c": "3"}
    state.change("s", {"b": None, "c": None})
    assert (len(state), state.bytes) == (0, 0)


def test_the_session_used_longest_ago_goes_first() -> None:
    state = TemporaryState(2, 1_000)
    for name in ("1", "2"):
        state.change(name, {"a": "1"})
    state.of("1")
    state.change("3", {"a": "1"})
    assert [bool(state.of(name)) for name in ("1", "2", "3")] == [True, False, True]


@given(steps=steps)
def test_what_is_held_is_counted_and_bounded(
    steps: list[tuple[str, dict[str, str | None]]],
) -> None:
    state = TemporaryState(2, 8)
    for name, change in steps:
        if isinstance(change, str):
            state.forget(name)
        else:
            state.change(name, change)
        held = [state.of(each) for each in "123"]
        size = sum(len(value.encode()) for values in held for value in values.values())
        assert state.bytes == size <= 8
        assert len(state) == sum(map(bool, held)) <= 2
