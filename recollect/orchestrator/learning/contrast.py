"""What sets executions that went well apart from those that did not.

For every term and every error it is counted in how many of each kind it occurs. What counts is the
logarithm of the ratio of its odds, smoothed by half an execution: a term that is in all that went
well and in none that failed stands out most; one that is in half of both says nothing. Without any
of the other kind, what is in most of this one stands out.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

import msgspec

from recollect.orchestrator.learning.terms import Places, Term, common_terms, shown, terms_of
from recollect.orchestrator.learning.words import EMPTY, VAGUE, split

SMOOTHING = 0.5
LOG_ODDS_MIN = 1.0
SUPPORT_MIN = 2
"""Executions that must have a term, if there are so many of their kind."""
SUPPORT_SHARE_MIN = 0.25
MARKS_MAX = 5
MARKS_MAX_ALONE = 2
"""Of a side that has one execution, where all that it says stands out."""
WORD_LESS = 1.5
"""What one word alone is worth less than a phrase, in log odds: it hardly says what to do."""
EXAMPLE_CHARS_MAX = 160
RANKED_MAX = 500
"""The most telling, of which those are chosen that say something new."""
DURATION_RATIO_MIN = 2.0
_with_digits = re.compile(r"[\w.-]*\d[\w.-]*")


class Outcome(msgspec.Struct, frozen=True):
    """How a task went, as far as it is compared."""

    success: bool
    summary: str
    errors: tuple[str, ...] = ()
    duration_ms: float | None = None


class Mark(msgspec.Struct, frozen=True):
    """Something that those of one kind have and the others have not."""

    text: str
    well: int
    """In how many that went well."""
    badly: int
    example: str = ""
    """How one of them said it, if that is more."""


class Contrast(msgspec.Struct, frozen=True):
    """What was found."""

    well: int
    """How many went well."""
    badly: int
    good: list[Mark]
    bad: list[Mark]
    errors: list[Mark]
    durations_ms: tuple[float, float] | None
    """The usual time of those that went well and of the others, if they differ much."""
    last: str = ""
    """What is told of the last one that went well, or else of the last one."""


def contrast(outcomes: Sequence[Outcome], known: frozenset[str] = frozenset()) -> Contrast:
    """Compare executions of one kind of task; `known` are words that say only which task it is."""
    well = {place for place, outcome in enumerate(outcomes) if outcome.success}
    badly = set(range(len(outcomes))) - well
    enough_well, enough_badly = _enough(well), _enough(badly)
    terms = common_terms(
        [outcome.summary for outcome in outcomes],
        lambda places: len(places & well) >= enough_well or len(places & badly) >= enough_badly,
    )
    errors = Places()
    for place, outcome in enumerate(outcomes):
        for error in outcome.errors:
            errors.setdefault((_alike(error),), set()).add(place)
    unsaid = known | EMPTY
    telling = {term: places for term, places in terms.items() if not unsaid.issuperset(term)}

    def marks(terms: Sequence[Term], side: set[int]) -> list[Mark]:
        return [_said(outcomes, term, telling[term], side) for term in terms]

    return Contrast(
        len(well),
        len(badly),
        marks(_standing_out(telling, well, badly), well),
        marks(_standing_out(telling, badly, well), badly),
        [
            _error(outcomes, error, errors[error,])
            for (error,) in _standing_out(errors, badly, well, phrases=False)
        ],
        _durations(outcomes),
        outcomes[max(well or badly)].summary if outcomes else "",
    )


def log_odds(here: int, of: int, there: int, of_there: int) -> float:
    """How much likelier it is to be met on one side than on the other."""
    return math.log((here + SMOOTHING) / (of - here + SMOOTHING)) - math.log(
        (there + SMOOTHING) / (of_there - there + SMOOTHING)
    )


def _standing_out(
    counted: Places, side: set[int], other: set[int], *, phrases: bool = True
) -> list[Term]:
    """What marks one side, the most telling first and nothing twice in other words."""
    least = _enough(side)
    ranked: list[tuple[float, Term]] = []
    for term, places in counted.items():
        here = len(places & side)
        if here < least:
            continue
        worth = log_odds(here, len(side), len(places & other), len(other))
        if len(term) == 1 and phrases:
            worth -= WORD_LESS
        if worth >= LOG_ODDS_MIN:
            ranked.append((worth, term))
    # Of equals the longer ones, and of these what was said first.
    ranked.sort(key=lambda item: (-round(item[0], 6), -len(item[1])))
    chosen: list[Term] = []
    passed: list[Term] = []
    for _, term in ranked[:RANKED_MAX]:
        if len(chosen) == (MARKS_MAX if len(side) > 1 else MARKS_MAX_ALONE):
            break
        # One word that is left of a phrase, when the others of it were told, is no news.
        told = passed if len(term) == 1 else chosen
        if not any(_says_the_same(counted, term, before) for before in told):
            chosen.append(term)
        passed.append(term)
    return chosen


def _enough(side: set[int]) -> int:
    """In how many of a side something must be met to be more than chance."""
    return max(min(SUPPORT_MIN, len(side)), math.ceil(SUPPORT_SHARE_MIN * len(side)), 1)


def _says_the_same(counted: Places, term: Term, before: Term) -> bool:
    shared = set(term) & set(before) - VAGUE
    return bool(shared) and (shared >= set(term) - EMPTY or counted[term] <= counted[before])


def _said(outcomes: Sequence[Outcome], term: Term, places: set[int], side: set[int]) -> Mark:
    """A term in the words of the last one of its side."""
    found = terms_of(outcomes[max(places & side)].summary)[term]
    text, clause = shown(found), " ".join(found.clause.split())
    more = len(split(clause)) > len(split(text))
    well = sum(outcomes[place].success for place in places)
    example = clause if more and len(clause) <= EXAMPLE_CHARS_MAX else ""
    return Mark(text, well, len(places) - well, example)


def _error(outcomes: Sequence[Outcome], alike: str, places: set[int]) -> Mark:
    """An error in the words of the first one that met it."""
    met = (e for place in sorted(places) for e in outcomes[place].errors if _alike(e) == alike)
    well = sum(outcomes[place].success for place in places)
    return Mark(" ".join(next(met).split()), well, len(places) - well)


def _alike(error: str) -> str:
    """An error without the numbers and ids in it."""
    return _with_digits.sub("#", " ".join(error.lower().split()))


def _durations(outcomes: Sequence[Outcome]) -> tuple[float, float] | None:
    taken: dict[bool, list[float]] = {True: [], False: []}
    for outcome in outcomes:
        if outcome.duration_ms is not None:
            taken[outcome.success].append(outcome.duration_ms)
    if min(len(taken[True]), len(taken[False])) < SUPPORT_MIN:
        return None
    well, badly = statistics.median(taken[True]), statistics.median(taken[False])
    shorter, longer = sorted((well, badly))
    return (well, badly) if longer > 0 and longer >= DURATION_RATIO_MIN * shorter else None
