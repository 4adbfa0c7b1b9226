"""Which words of a text a query meant, and where a long text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.cli.highlighting import Wanted, excerpt


def marked(query: str, text: str) -> list[str]:
    return [text[span.start : span.end] for span in Wanted(query).spans(text)]


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("migration", "They migrated; migrations migrate.", ["migrated", "migrations", "migrate"]),
        ("running", "She runs, he ran, we run.", ["runs", "run"]),
        ("cities", "A city of cities.", ["city", "cities"]),
        ("When is the build?", "The build is when it is.", ["build"]),
        ("what is it", "It is what it is.", ["It", "is", "what", "it", "is"]),
        ("CAFÉ", "The cafe and the Café.", ["cafe", "Café"]),
        ("green", "Greet the greens.", ["greens"]),
        ("parse_moment", "call parse_moment(x)", ["parse", "moment"]),
        ("deploy", "The deployment.", ["deployment"]),
        ("移行", "データベースの移行を行います", ["移行"]),
        ("Was kostet das?", "Das kostet viel.", ["Das", "kostet"]),
        ("", "Anything.", []),
    ],
)
def test_forms_of_the_words_asked_for_are_marked(query: str, text: str, words: list[str]) -> None:
    assert marked(query, text) == words


def test_a_short_text_is_shown_whole() -> None:
    text = "The build is green."
    assert excerpt(text, Wanted("build").spans(text), 40).text == text


def test_a_long_text_is_cut_around_what_matches_best() -> None:
    filler = "Nothing of note was said in this part of it. "
    text = f"Only the build here. {filler * 20}The build is green again. {filler * 20}"
    part = excerpt(text, Wanted("Is the build green?").spans(text), 120)
    assert "The build is green again." in part.text
    assert part.text.startswith("… ") and part.text.endswith(" …")
    assert {part.text[span.start : span.end] for span in part.spans} == {"build", "green"}


def test_without_a_match_a_long_text_is_cut_after_its_beginning() -> None:
    text = "One two three four. " * 50
    part = excerpt(text, [], 50)
    assert part.text.startswith("One two three") and part.text.endswith(" …")


@given(st.text(max_size=60), st.text(max_size=400), st.integers(10, 200))
def test_any_text_is_cut_to_its_bound_with_its_marks_inside(
    query: str, text: str, chars_max: int
) -> None:
    part = excerpt(text, Wanted(query).spans(text), chars_max)
    assert len(part.text) <= max(chars_max + 4, 0)
    for span in part.spans:
        assert 0 <= span.start < span.end <= len(part.text)
