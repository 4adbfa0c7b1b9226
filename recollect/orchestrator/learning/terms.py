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

NOT_ALONE = DENYING | BESIDE

Term = tuple[str, ...]
Found = tuple[list[str], int, int]
"""Where a term stands: the words of its clause, its first and its last among them."""


def words_of(text: str) -> set[str]:
    """The words of a text that carry meaning."""
    words = _word.findall(text[:TEXT_CHARS_MAX].lower())
    return {_plain(word) for word in words if word not in STOP_WORDS}


def terms_of(text: str) -> dict[Term, Found]:
    """Each term with where it first stands in the text."""
    terms: dict[Term, Found] = {}
    for clause in _between_clauses.split(text[:TEXT_CHARS_MAX].lower()):
        _add_terms(_word.findall(clause), terms)
    return terms


def shown(found: Found) -> str:
    """A term as people read it."""
    words, first, last = found
    return " ".join(words[first : last + 1])[:TERM_CHARS_MAX]


def _add_terms(clause: list[str], terms: dict[Term, Found]) -> None:
    # Executions are compared by the hundred, so this is kept short.
    telling = [place for place, word in enumerate(clause) if word not in STOP_WORDS]
    plain = [_plain(clause[place]) for place in telling]
    for first, start in enumerate(telling):
        before = start
        for last in range(first, min(first + WORDS_MAX, len(telling))):
            place = telling[last]
            if place - before > SKIPPED_MAX + 1:
                break
            before = place
            term = tuple(plain[first : last + 1])
            if term not in terms and _says_something(term):
                terms[term] = (clause, start, place)


def _says_something(term: Term) -> bool:
    last = term[-1]
    if len(term) == 1:
        return len(last) >= 3 and last not in NOT_ALONE and not _number.fullmatch(last)
    # What denies must deny something, so it is not the last.
    return last not in DENYING and not all(map(_number.fullmatch, term))


def _plain(word: str) -> str:
    """A word without its plural, so that check and checks are one."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
