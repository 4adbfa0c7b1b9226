"""Any name of a framework has a place in Recollect, and is the same when it comes back."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from recollect.integrations.events import packed, unpacked
from recollect.integrations.google_adk_state import shown_state, stored_state
from recollect.integrations.names import key_of, name_of, names_below, namespace_of, part_of

# As the orchestrator checks it.
NAMESPACE = re.compile(r"(temp|session|user|app|project)(:[^:\s\x00]+)+")
odd_texts = st.text(st.sampled_from("a%:.3A \t\n\x00\x85\u2028ä☃"), max_size=6)
texts = st.one_of(st.text(), odd_texts)


@given(names=st.lists(texts, max_size=4).map(tuple))
def test_names_are_the_same_when_they_come_back(names: tuple[str, ...]) -> None:
    namespace = namespace_of("app:root", names)
    assert NAMESPACE.fullmatch(namespace)
    assert names_below("app:root", namespace) == names
    assert all(name_of(key_of(name)) == name and "\x00" not in key_of(name) for name in names)


@given(one=odd_texts, other=odd_texts)
def test_two_names_never_become_one(one: str, other: str) -> None:
    assert (part_of(one) == part_of(other)) == (key_of(one) == key_of(other)) == (one == other)


@given(
    app=texts,
    state=st.dictionaries(
        st.builds(
            str.__add__, st.sampled_from(("", "app:", "user:", "session:", "session:app:")), texts
        ),
        st.one_of(st.none(), st.integers(), texts, st.lists(texts, max_size=2)),
    ),
)
def test_state_is_the_same_when_it_comes_back(app: str, state: dict[str, object]) -> None:
    kept = {key: value for key, value in state.items() if not key.startswith("temp:")}
    stored = stored_state(app, state)
    assert len(stored) == len(kept)
    assert None not in stored.values()
    assert shown_state(app, stored) == kept
    assert all(not key.startswith("user:") for key in shown_state(f"{app}2", stored))


def test_what_is_too_deep_or_has_a_nul_is_kept_as_text() -> None:
    deep: object = 1
    for _ in range(30):
        deep = [deep]
    for value in (deep, {"a": "\x00"}, {"recollect:json": "1"}, [{"recollect:json": 2}]):
        assert isinstance(packed(value), dict) and packed(value) != value
        assert unpacked(packed(value)) == value
    assert packed({"a": [1, None]}) == {"a": [1, None]}
