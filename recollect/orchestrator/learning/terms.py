"""The terms of a text: one to four words that say what was done, as they stand in it.

Words that carry no meaning are skipped over and still shown: in "took a backup first" the term is
took-backup-first. So are numbers and ids. What is denied is a term only together with what denies
it, for "without a backup" is no backup; that means nothing alone, and nothing at the end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.orchestrator.learning import words

TEXT_CHARS_MAX = 4_000
"""Of one text; what comes after is not looked at."""
WORDS_MAX = 4
SKIPPED_MAX = 2
"""Words without meaning between two of a term."""
DENIED_MAX = 3
"""Words with meaning that one which denies is about."""
TERM_CHARS_MAX = 100
_between_clauses = re.compile(
    rf"[.!?]+(?=\s)|[,:](?!\d)|[;()\[\]{{}}\n\r\"]+|[.!?]+$|\b(?:{'|'.join(sorted(words.BETWEEN))})\b",
    re.IGNORECASE,
)

Term = tuple[str, ...]


class Found(NamedTuple):
    """Where a term stands."""

    said: list[str]
    """The words of its clause, as they are written."""
    first: int
    last: int
    clause: str


def words_of(text: str) -> set[str]:
    """The words of a text that carry meaning."""
    return {
        words.stem(word)
        for word in words.split(text[:TEXT_CHARS_MAX])
        if word.lower() not in words.STOP_WORDS
    }


def terms_of(text: str) -> dict[Term, Found]:
    """Each term with where it first stands in the text."""
    terms: dict[Term, Found] = {}
    for clause in _between_clauses.split(text[:TEXT_CHARS_MAX]):
        _add_terms(clause, terms)
    return terms


def shown(found: Found) -> str:
    """A term as people read it."""
    said = found.said[found.first : found.last + 1]
    if found.first == 0 and said[0].istitle():
        said = [said[0].lower(), *said[1:]]  # only the beginning of a sentence
    return " ".join(said)[:TERM_CHARS_MAX]


def _add_terms(clause: str, terms: dict[Term, Found]) -> None:
    # Executions are compared by the hundred, so this is kept short.
    said = words.split(clause)
    telling = [
        place
        for place, word in enumerate(said)
        if word.lower() not in words.STOP_WORDS and not words.names_one_thing(word)
    ]
    stems = [words.stem(said[place]) for place in telling]
    denied_until = 0
    for first, start in enumerate(telling):
        if words.denies(stems[first]):
            denied_until = first + DENIED_MAX
        elif first <= denied_until and denied_until:
            continue
        before = start
        for last in range(first, min(first + WORDS_MAX, len(telling))):
            place = telling[last]
            if place - before > SKIPPED_MAX + 1:
                break
            before = place
            term = tuple(stems[first : last + 1])
            if term not in terms and _says_something(term):
                terms[term] = Found(said, start, place, clause)


def _says_something(term: Term) -> bool:
    # What denies must deny something, so it is not the last.
    return not words.denies(term[-1]) and any(
        len(word) >= 3 and word not in words.EMPTY and not words.denies(word) for word in term
    )
