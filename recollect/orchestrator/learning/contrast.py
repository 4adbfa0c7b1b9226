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
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from recollect.orchestrator.learning.terms import Term, shown, terms_of

SMOOTHING = 0.5
LOG_ODDS_MIN = 1.0
SUPPORT_MIN = 2
"""Executions that must have a term, if there are so many of their kind."""
SUPPORT_SHARE_MIN = 0.25
MARKS_MAX = 5
RANKED_MAX = 500
"""The most telling, of which those are chosen that say something new."""
DURATION_RATIO_MIN = 2.0
_digits = re.compile(r"\d+")


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


class _Counted(msgspec.Struct):
    """Something with the places of the executions that have it."""

    text: Callable[[], str]
    words: Term
    places: set[int]


def contrast(outcomes: Sequence[Outcome], known: frozenset[str] = frozenset()) -> Contrast:
    """Compare executions of one kind of task; `known` are words that say only which task it is."""
    well = {place for place, outcome in enumerate(outcomes) if outcome.success}
    badly = set(range(len(outcomes))) - well
    terms = _count(
        (place, term, partial(shown, found))
        for place, outcome in enumerate(outcomes)
        for term, found in terms_of(outcome.summary).items()
    )
    telling = [one for one in terms if not known.issuperset(one.words)]
    errors = _count(
        (place, (_digits.sub("#", error.lower()),), partial(str, error))
        for place, outcome in enumerate(outcomes)
        for error in (" ".join(said.split()) for said in outcome.errors)
    )
    return Contrast(
        len(well),
        len(badly),
        _standing_out(telling, well, badly, well),
        _standing_out(telling, badly, well, well),
        _standing_out(errors, badly, well, well),
        _durations(outcomes),
    )


def log_odds(here: int, of: int, there: int, of_there: int) -> float:
    """How much likelier it is to be met on one side than on the other."""
    return math.log((here + SMOOTHING) / (of - here + SMOOTHING)) - math.log(
        (there + SMOOTHING) / (of_there - there + SMOOTHING)
    )


def _count(met: Iterable[tuple[int, Term, Callable[[], str]]]) -> list[_Counted]:
    counted: dict[Term, _Counted] = {}
    for place, term, text in met:
        known = counted.get(term)
        if known is None:
            counted[term] = _Counted(text, term, {place})
        else:
            known.places.add(place)
    return list(counted.values())


def _standing_out(
    counted: Sequence[_Counted], side: set[int], other: set[int], well: set[int]
) -> list[Mark]:
    """What marks one side, the most telling first and nothing twice in other words."""
    least = max(min(SUPPORT_MIN, len(side)), math.ceil(SUPPORT_SHARE_MIN * len(side)), 1)
    ranked: list[tuple[float, int, str, _Counted]] = []
    for one in counted:
        here = len(one.places & side)
        if here < least:
            continue
        odds = log_odds(here, len(side), len(one.places & other), len(other))
        if odds >= LOG_ODDS_MIN:
            ranked.append((-round(odds, 6), -len(one.words), one.text(), one))
    ranked.sort(key=lambda item: item[:3])
    chosen: list[_Counted] = []
    passed: list[_Counted] = []
    for *_, one in ranked[:RANKED_MAX]:
        if len(chosen) == MARKS_MAX:
            break
        # One word that is left of a phrase, when the others of it were told, is no news.
        told = passed if len(one.words) == 1 else chosen
        if not any(_says_the_same(one, before) for before in told):
            chosen.append(one)
        passed.append(one)
    return [Mark(one.text(), len(one.places & well), len(one.places - well)) for one in chosen]


def _says_the_same(one: _Counted, before: _Counted) -> bool:
    return not set(one.words).isdisjoint(before.words) and one.places <= before.places


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
