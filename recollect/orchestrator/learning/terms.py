"""The terms of a text: one to four words that say what was done, as they stand in it.

Words that carry no meaning are skipped over and still shown: in "took a backup first" the term is
took-backup-first. So are numbers and ids. What is denied is a term only together with what denies
it, for "without a backup" is no backup; that means nothing alone, and nothing at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
Places = dict[Term, set[int]]
"""Terms with the texts that have them."""
Stems = dict[str, str | None]
"""What is known of words as they are written: the stem, or None where one is skipped over."""


class Found(NamedTuple):
    """Where a term stands."""

    said: list[str]
    """The words of its clause, as they are written."""
    first: int
    last: int
    clause: str


class Clause(NamedTuple):
    """A part of a text that tells of one thing."""

    text: str
    said: list[str]
    places: list[int]
    """Of the words that are not skipped over."""
    stems: list[str]

    def begins(self) -> list[int]:
        """Which of its stems may begin a term: all but those that are denied."""
        begins: list[int] = []
        denied_until = -1
        for at, stem in enumerate(self.stems):
            if words.denies(stem):
                denied_until = at + DENIED_MAX
            elif at <= denied_until:
                continue
            begins.append(at)
        return begins

    def term(self, first: int, length: int) -> Term | None:
        """So many stems from there on, if they stand close to each other."""
        last = first + length - 1
        if last >= len(self.stems):
            return None
        places = self.places
        if length > 1 and places[last] - places[last - 1] > SKIPPED_MAX + 1:
            return None
        return tuple(self.stems[first : last + 1])


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
    for clause in _clauses_of(text, {}):
        for first in clause.begins():
            for length in range(1, WORDS_MAX + 1):
                term = clause.term(first, length)
                if term is None:
                    break
                if term not in terms and _says_something(term):
                    place = clause.places[first + length - 1]
                    terms[term] = Found(clause.said, clause.places[first], place, clause.text)
    return terms


def common_terms(texts: Sequence[str], enough: Callable[[set[int]], bool]) -> Places:
    """The terms that enough texts have.

    What too few begin with is not looked at further, for with another word it is in no more.
    """
    stems: Stems = {}
    read = [_clauses_of(text, stems) for text in texts]
    begins = [
        (place, clause, clause.begins()) for place, clauses in enumerate(read) for clause in clauses
    ]
    common = Places()
    for length in range(1, WORDS_MAX + 1):
        met = Places()
        for place, clause, firsts in begins:
            for first in firsts:
                term = clause.term(first, length)
                if term is not None:
                    met.setdefault(term, set()).add(place)
        often = {term: places for term, places in met.items() if enough(places)}
        begins = [
            (place, clause, left)
            for place, clause, firsts in begins
            if (left := [first for first in firsts if clause.term(first, length) in often])
        ]
        common.update((term, often[term]) for term in often if _says_something(term))
    return common


def shown(found: Found) -> str:
    """A term as people read it."""
    said = found.said[found.first : found.last + 1]
    if found.first == 0 and said[0].istitle():
        said = [said[0].lower(), *said[1:]]  # only the beginning of a sentence
    return " ".join(said)[:TERM_CHARS_MAX]


def _clauses_of(text: str, known: Stems) -> list[Clause]:
    """The clauses of a text; what is found out about its words is kept in `known`."""
    clauses: list[Clause] = []
    for clause in _between_clauses.split(text[:TEXT_CHARS_MAX]):
        said = words.split(clause)
        for word in said:
            if word not in known:
                skipped = word.lower() in words.STOP_WORDS or words.names_one_thing(word)
                known[word] = None if skipped else words.stem(word)
        stems = [(place, stem) for place, word in enumerate(said) if (stem := known[word])]
        if stems:
            clauses.append(Clause(clause, said, *map(list, zip(*stems, strict=True))))
    return clauses


def _says_something(term: Term) -> bool:
    # What denies must deny something, so it is not the last.
    return not words.denies(term[-1]) and any(
        len(word) >= 3 and word not in words.EMPTY and not words.denies(word) for word in term
    )
