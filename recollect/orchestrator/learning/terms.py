"""The terms of a text: one to three words that carry meaning, as they stand in it.

Words that carry none are skipped over and still shown: in "took a backup first" the term is
took-backup-first. Words that deny count as words, for "without backup" is not "backup"; they mean
nothing alone, and nothing at the end.
"""

from __future__ import annotations

import re

TEXT_CHARS_MAX = 4_000
"""Of one text; what comes after is not looked at."""
WORDS_MAX = 3
SKIPPED_MAX = 2
"""Words without meaning between two of a term."""
TERM_CHARS_MAX = 100
_word = re.compile(r"\w+(?:[-'.]\w+)*")
_between_clauses = re.compile(r"[.!?]+(?=\s)|[,;:()\[\]{}\n\r\"]+|[.!?]+$")
_number = re.compile(r"[\d.]+")

DENYING = frozenset(
    _word.findall("no not never without none cannot can't don't didn't doesn't wasn't isn't won't")
)
# "Switched over" is more than "switched", and before is not after; alone they mean nothing.
BESIDE = frozenset(_word.findall("after before off out over under up"))
STOP_WORDS = frozenset(
    _word.findall("""
    a about again all also although always am an and any are as at be because been being both
    but by could did do does doing done during each else for from further had has have having he
    her here hers him his how however i if in into is it its itself just may me might more most
    much must my of on once only or other our own per please same shall she should since so some
    still such than that the their them then there these they this those through to too until
    upon us use used using very via was we were what when where which while who whom why will
    with within would you your went well task ok okay
    """)
)

Term = tuple[str, ...]


def words_of(text: str) -> set[str]:
    """The words of a text that carry meaning."""
    words = (found.group().lower() for found in _word.finditer(text[:TEXT_CHARS_MAX]))
    return {_plain(word) for word in words if word not in STOP_WORDS}


def terms_of(text: str) -> dict[Term, str]:
    """Each term with how it first stands in the text."""
    terms: dict[Term, str] = {}
    for clause in _between_clauses.split(text[:TEXT_CHARS_MAX]):
        _add_terms(clause, terms)
    return terms


def _add_terms(clause: str, terms: dict[Term, str]) -> None:
    # Words that carry meaning: as they count, where they stand, and how many words came before.
    words: list[tuple[str, int, int, int]] = []
    for place, found in enumerate(_word.finditer(clause)):
        word = found.group().lower()
        if word not in STOP_WORDS:
            words.append((_plain(word), found.start(), found.end(), place))
    for first in range(len(words)):
        for last in range(first, min(first + WORDS_MAX, len(words))):
            if last > first and words[last][3] - words[last - 1][3] > SKIPPED_MAX + 1:
                break
            term = tuple(word for word, *_ in words[first : last + 1])
            shown = clause[words[first][1] : words[last][2]]
            if term not in terms and _says_something(term) and len(shown) <= TERM_CHARS_MAX:
                terms[term] = " ".join(shown.lower().split())


def _says_something(term: Term) -> bool:
    if len(term) == 1 and (len(term[0]) < 3 or term[0] in BESIDE):
        return False
    # What denies must deny something, so it is not the last.
    if term[-1] in DENYING:
        return False
    return not all(_number.fullmatch(word) for word in term)


def _plain(word: str) -> str:
    """A word without its plural, so that check and checks are one."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
