"""State that is held in memory alone: merged, measured, bounded, let go."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.sessions.temporary import REMOVED_MAX, TemporaryState

changes = st.dictionaries(
    st.sampled_from("abc"), st.none() | st.text("xü", min_size=1, max_size=4), max_size=3
)
steps = st.lists(st.tuples(st.sampled_from("123"), changes | st.just("forget")), max_size=20)


class Followed(TemporaryState):
    """One that others may change too."""

    shared = True


def test_deltas_are_merged_and_null_removes() -> None:
    state = TemporaryState(10, 1_000)
    state.change("s", 1, {"a": "1", "b": "2"})
    state.change("s", 2, {"a": None, "c": "3", "d": None})
    assert state.of("s") == {"b": "2", "c": "3"}
    assert state.measured_after("s", {"b": None, "e": '"ü"'}) == (2, 5)
    assert state.of("s") == {"b": "2", "c": "3"}
    state.change("s", 3, {"b": None, "c": None})
    assert (len(state), state.bytes) == (0, 0)


def test_the_session_used_longest_ago_goes_first() -> None:
    state = TemporaryState(2, 1_000)
    for name in ("1", "2"):
        state.change(name, 1, {"a": "1"})
    state.of("1")
    state.change("3", 1, {"a": "1"})
    assert [bool(state.of(name)) for name in ("1", "2", "3")] == [True, False, True]


@given(steps=steps)
def test_what_is_held_is_counted_and_bounded(
    steps: list[tuple[str, dict[str, str | None]]],
) -> None:
    state = TemporaryState(2, 8)
    for version, (name, change) in enumerate(steps, 1):
        if isinstance(change, str):
            state.forget(name)
        else:
            state.change(name, version, change)
        held = [state.of(each) for each in "123"]
        size = sum(len(value.encode()) for values in held for value in values.values())
        assert state.bytes == size <= 8
        assert len(state) == sum(map(bool, held)) <= 2


@given(
    made=st.lists(changes, max_size=12),
    order=st.randoms(use_true_random=False),
    repeated=st.integers(0, 3),
)
def test_in_whatever_order_changes_become_known_the_outcome_is_the_same(
    made: list[dict[str, str | None]], order: Random, repeated: int
) -> None:
    known = list(enumerate(made, 1))
    expected = {}
    for _, change in known:
        expected.update(change)
    told = known + known[:repeated]
    order.shuffle(told)
    state = Followed(10, 1_000)
    for version, change in told:
        state.change("s", version, change)
    assert state.of("s") == {key: value for key, value in expected.items() if value is not None}


def test_of_many_removed_keys_only_the_last_are_remembered() -> None:
    state = Followed(10, 1_000)
    for n in range(10 * REMOVED_MAX):
        state.change("s", 2 * n + 1, {f"k{n}": "1"})
        state.change("s", 2 * n + 2, {f"k{n}": None})
    # One that comes late is still known to be gone.
    state.change("s", 1, {"k0": "1"})
    assert state.of("s") == {}
    assert len(state._sessions["s"].entries) <= REMOVED_MAX
