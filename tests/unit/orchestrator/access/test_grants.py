"""Grants: what a pattern covers, and which texts are patterns."""

from __future__ import annotations

import pytest

from recollect.orchestrator.access.grants import (
    EVERYTHING,
    NOTHING,
    Grant,
    Grants,
    is_pattern,
    normalised,
)

SCOPED = Grants((Grant("user:alice", "write"), Grant("app", "read")))


@pytest.mark.parametrize(
    ("namespace", "level", "allowed"),
    [
        ("user:alice", "write", True),
        ("user:alice:notes", "write", True),
        ("user:alice", "read", True),
        ("user:alice", "admin", False),
        ("user:alice2", "read", False),
        ("user", "read", False),
        ("app:default", "read", True),
        ("app:default", "write", False),
        ("application:x", "read", False),
        (None, "read", False),
        (None, "open", True),
    ],
)
def test_a_grant_covers_what_is_below_it_and_the_levels_beneath_it(
    namespace: str | None, level: str, allowed: bool
) -> None:
    assert SCOPED.allows(namespace, level) is allowed  # type: ignore[arg-type]


def test_everything_is_all_and_nothing_is_none() -> None:
    assert EVERYTHING.allows(None, "admin") and EVERYTHING.everywhere("admin")
    assert not NOTHING.allows("user:alice", "read")
    assert not SCOPED.everywhere("read")


def test_the_readable_part_of_a_namespace_is_what_the_patterns_leave_of_it() -> None:
    assert EVERYTHING.within("user") is None
    assert SCOPED.within("user:alice:notes") is None
    assert SCOPED.within("user") == ("user:alice",)
    assert SCOPED.within("project") == ()
    assert SCOPED.within(None) == ("user:alice", "app")


@pytest.mark.parametrize(
    ("given", "spelt"),
    [
        ("user:*", "user"),
        (" user:alice ", "user:alice"),
        ("user:alice:*", "user:alice"),
        ("*", "*"),
    ],
)
def test_a_pattern_has_one_spelling(given: str, spelt: str) -> None:
    assert normalised(given) == spelt
    assert is_pattern(spelt)


@pytest.mark.parametrize(
    "given",
    [
        "",
        ":",
        "users",
        "**",
        "user:*:notes",
        "user:al*",
        "user:",
        "user:alice:",
        "user::x",
        "user::*",
        "user::",
        "user:a b",
        "u:\x00",
    ],
)
def test_what_could_be_mistaken_for_a_pattern_is_none(given: str) -> None:
    assert not is_pattern(normalised(given))
