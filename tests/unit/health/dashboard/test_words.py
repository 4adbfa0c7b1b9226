"""How the dashboard words numbers, times and changes, and what it asks for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.health.dashboard import wording
from recollect.health.dashboard.diffing import content_lines, field_changes
from recollect.health.dashboard.searching import Question
from recollect.protocol import operations as ops
from recollect.protocol.errors import InvalidArgument

NOW = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (999, "999"), (1234, "1.23 k"), (999_900, "1 M"), (1.25, "1.25"), (-5000, "-5 k")],
)
def test_numbers_are_short(number: float, words: str) -> None:
    assert wording.count(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.00004, "40 µs"),
        (0.25, "250 ms"),
        (5, "5.0 s"),
        (90, "2 min"),
        (86_400, "1.0 d"),
    ],
)
def test_durations_have_one_unit(seconds: float, words: str) -> None:
    assert wording.duration(seconds) == words


def test_times_are_told_from_now() -> None:
    assert wording.age("2026-05-08T11:57:00Z", NOW) == "3 min ago"
    assert wording.age("2026-05-10T12:00:00Z", NOW) == "in 2.0 d"
    assert wording.age("2026-05-08T12:00:00.5Z", NOW) == "just now"
    assert wording.age(None, NOW) == wording.age("not a time", NOW) == "never"
    assert wording.at("2026-05-08T11:57:00Z") == "2026-05-08 11:57:00 UTC"


def test_a_page_holds_no_more_of_a_text_than_can_be_read() -> None:
    assert wording.cut("x" * 10, 10) == "x" * 10
    assert wording.cut("x" * 1500, 10) == f"{'x' * 10}\n… and 1,490 more characters"
    assert wording.shortened("  one\n two  ", 80) == "one two"
    assert wording.shortened("one two three", 8) == "one two…"


def test_a_change_is_shown_line_by_line() -> None:
    lines = content_lines("one\ntwo\nthree", "one\n2\nthree")
    assert [tuple(line) for line in lines] == [
        ("same", " one"),
        ("minus", "-two"),
        ("plus", "+2"),
        ("same", " three"),
    ]
    assert content_lines("same", "same") == []
    # A text may look like the marks of a difference.
    assert [line.text for line in content_lines("", "++ b")] == ["+++ b"]


def test_other_fields_are_compared_as_well() -> None:
    before = dict.fromkeys(
        (
            *("memory_type", "memory_tier", "value", "metadata", "tags", "importance", "parent_id"),
            *(
                "source",
                "trust",
                "valid_from",
                "valid_to",
                "expires_at",
                "archived_at",
                "deleted_at",
            ),
        )
    )
    after = {**before, "tags": ["x"], "memory_tier": "long"}
    assert list(field_changes(before, after)) == [
        ("Memory tier", "none", "long"),
        ("Tags", "none", '["x"]'),
    ]


def test_a_question_lives_in_the_address() -> None:
    question = Question(query="a & b", way="meaning", namespace="user:alice")
    assert question.path() == "/memories?query=a+%26+b&way=meaning&namespace=user%3Aalice"
    assert Question().path() == "/memories"
    assert Question.of({"way": "<script>", "query": " x "}) == Question(query="x")
    assert isinstance(Question().operation(), ops.ListMemories)
    assert isinstance(Question(query="x").operation(), ops.Recall)
    assert isinstance(Question(query="x", way="words").operation(), ops.SearchMemory)
    semantic = Question(query="x", way="meaning", memory_type="episodic").operation()
    assert isinstance(semantic, ops.SemanticSearch)
    assert semantic.filters == {"AND": [{"memory_type": "episodic"}]}


@pytest.mark.parametrize("filters", ["{", "[]", "3"])
def test_filters_that_are_none_are_refused_in_words(filters: str) -> None:
    assert isinstance(Question(filters=filters).operation(), InvalidArgument)
