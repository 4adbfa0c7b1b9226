"""Conditions as people type them, and the filters that they mean."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.cli.conditions import all_of, condition_from, filters_from, moment_from
from recollect.cli.failures import USAGE, Failure


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("memory_type=episodic", {"memory_type": "episodic"}),
        ("type = episodic", {"memory_type": "episodic"}),
        ("importance>=0.5", {"importance": {"gte": 0.5}}),
        ("importance < 1", {"importance": {"lt": 1}}),
        ("tags=x", {"tags": "x"}),
        ("tag!=x", {"tags": {"ne": "x"}}),
        ("content~a=b", {"content": {"contains": "a=b"}}),
        ("by=Anna Smith", {"created_by": "Anna Smith"}),
        ("metadata.page>3", {"metadata.page": {"gt": 3}}),
        ("metadata.done=true", {"metadata.done": True}),
        ('metadata.code="42"', {"metadata.code": "42"}),
        ("metadata.x.y=plain words", {"metadata.x.y": "plain words"}),
        ("key=42", {"key": "42"}),
        ("session=null", {"session_id": None}),
        ("parent!=null", {"parent_id": {"ne": None}}),
        ("created_at>=2026-01-31", {"created_at": {"gte": "2026-01-31"}}),
        ("valid_from<1700000000", {"valid_from": {"lt": 1700000000}}),
        ('source=""', {"source": ""}),
    ],
)
def test_a_condition_means_a_filter(text: str, means: dict[str, Any]) -> None:
    assert condition_from(text) == means


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("importance", "has no comparison"),
        ("", "has no"),
        ("=x", "has no field"),
        ("importance=", "has no value"),
        ("importance>=high", "not a number"),
        ("importance>nan", "not a number"),
        ("tags>x", "only there or not"),
        ("key>null", "only = and != can do"),
        ('source="open', "does not close"),
    ],
)
def test_what_is_no_condition_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(Failure, match=reason) as refused:
        condition_from(text)
    assert refused.value.exit_code == USAGE
    assert "--where" in refused.value.message
    assert "in quotes" in refused.value.advice


def test_everything_that_is_asked_for_must_hold() -> None:
    assert filters_from(None, None) is None
    assert filters_from(None, ["tag=a"]) == {"tags": "a"}
    assert filters_from('{"key": "k"}', ["tag=a", "tag=b"]) == {
        "AND": [{"key": "k"}, {"tags": "a"}, {"tags": "b"}]
    }
    assert all_of(None, {"key": "k"}, None) == {"key": "k"}
    with pytest.raises(Failure, match="--filter is not a JSON object"):
        filters_from("[1]", None)


def test_a_moment_is_a_date_or_a_number_of_seconds() -> None:
    assert moment_from(None) is None
    assert moment_from("2026-01-31T12:00Z") == "2026-01-31T12:00Z"
    assert moment_from("1700000000.5") == 1700000000.5
