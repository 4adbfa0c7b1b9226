"""The score of each candidate: relevance, what the query's intent adds, and the company it keeps.

Relevance is how near a memory is to the query in words and in meaning. It alone flows to the turns
beside a hit: that a neighbour has the right author or lies in the right week says nothing about
this memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from recollect.orchestrator.search.ranking.candidates import Candidate, Ranked
from recollect.orchestrator.search.ranking.dates import Span
from recollect.orchestrator.search.ranking.queries import Intent
from recollect.orchestrator.search.ranking.texts import tells_time, traits, without_address
from recollect.orchestrator.search.ranking.turns import session_best, turns_beside
from recollect.orchestrator.search.ranking.weights import Weights

Column = npt.NDArray[np.float64]

DAY_US = 86_400 * 1_000_000
# Where even the best cosine is below this, nothing stored is near, and meaning counts for less.
SIMILARITY_BEST_MIN = 0.25
# A reply is about what it replies to; what one person writes in a row often is not.
MONOLOGUE_RATE = 0.5
LETTERS_PER_WORD_MAX = 12
# What has at least this share of the best relevance is about the thing that is asked for.
ABOUT_SHARE = 0.6
# Where a memory has no vector yet, its words stand in for its meaning, at this rate.
UNEMBEDDED_RATE = 0.6


def rank(
    intent: Intent,
    candidates: Sequence[Candidate],
    weights: Weights,
    runs: Iterable[Sequence[int]] = (),
) -> list[Ranked]:
    """The candidates by falling score, each with the parts that add up to it.

    `runs` are stretches of consecutive turns, as numbers of memories in the order of their session;
    turns that are no candidates may be left in. Without any, no credit flows from turn to turn.
    """
    if not candidates:
        return []
    columns = _columns(intent, candidates, weights, runs) | _read(intent, candidates, weights)
    nums = np.array([candidate.num for candidate in candidates])
    best = _best(columns, nums)
    listed = {name: column[best].tolist() for name, column in columns.items() if column.any()}
    values_of = zip(*listed.values(), strict=True) if listed else repeat((), len(best))
    # Adding up what is shown, in the order shown, makes the parts sum to the score exactly.
    return [
        Ranked(num, sum(values), dict(zip(listed, values, strict=True)))
        for num, values in zip(nums[best].tolist(), values_of, strict=True)
    ]


def _best(columns: dict[str, Column], nums: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Places by falling score; of equals the newer first, however they were found."""
    return np.lexsort((-nums, -np.sum(list(columns.values()), axis=0)))


def _columns(
    intent: Intent,
    candidates: Sequence[Candidate],
    weights: Weights,
    runs: Iterable[Sequence[int]],
) -> dict[str, Column]:
    lexical = _lexical(candidates)
    semantic = _semantic(candidates, lexical)
    relevance = weights.lexical * lexical + weights.semantic * semantic
    parts = {
        "lexical": weights.lexical * lexical,
        "semantic": weights.semantic * semantic,
        "importance": weights.importance * np.array([c.importance for c in candidates]),
        "strength": weights.strength * np.array([c.strength for c in candidates]),
    }
    if intent.authors:
        parts["author"] = weights.author * _by(intent, candidates)
    moments = np.array([candidate.moment_us for candidate in candidates], dtype=np.int64)
    if intent.spans:
        parts["period"] = weights.period * _nearness(
            moments, intent.spans, weights.period_fade_days
        )
    parts["recency"] = _recency(intent, moments, relevance, weights)
    parts |= _context(candidates, relevance, weights, runs)
    return parts


def _read(intent: Intent, candidates: Sequence[Candidate], weights: Weights) -> dict[str, Column]:
    """What only the text itself can tell."""
    known = [traits(candidate.content) for candidate in candidates]
    parts = {"specifics": weights.specifics * np.array([trait.specifics for trait in known])}
    if not intent.asks_about_asking:
        parts["question"] = -weights.question * np.array([trait.asks for trait in known])
    if intent.asks_when:
        told = [float(tells_time(candidate.content)) for candidate in candidates]
        parts["when"] = weights.when * np.array(told)
    if intent.names:
        parts["mention"] = weights.mention * _about(intent, candidates)
    return parts


def _lexical(candidates: Sequence[Candidate]) -> Column:
    scores = np.array([candidate.lexical or 0.0 for candidate in candidates])
    best = scores.max()
    return np.maximum(scores, 0) / best if best > 0 else np.zeros(len(scores))


def _semantic(candidates: Sequence[Candidate], lexical: Column) -> Column:
    cosines = np.array([np.nan if c.similarity is None else c.similarity for c in candidates])
    missing = np.isnan(cosines)
    if missing.all():
        return np.zeros(len(candidates))
    best = max(float(np.nanmax(cosines)), SIMILARITY_BEST_MIN)
    scaled = np.maximum(cosines, 0) / best
    return np.where(missing, UNEMBEDDED_RATE * lexical, scaled)


def _by(intent: Intent, candidates: Sequence[Candidate]) -> Column:
    return np.array(
        [intent.authors.get((c.author or "").casefold().strip(), 0.0) for c in candidates]
    )


def _about(intent: Intent, candidates: Sequence[Candidate]) -> Column:
    """Whether a text of somebody else speaks about those whom the query names."""
    pattern = rf"\b(?:{'|'.join(map(re.escape, intent.names))})\b"
    named = re.compile(pattern, re.IGNORECASE).search
    folded = [name.casefold() for name in intent.names]
    told: list[float] = []
    for candidate, by in zip(candidates, _by(intent, candidates), strict=True):
        text = candidate.content
        # Most texts name nobody who is asked for, which is seen sooner without the expression.
        small = text.casefold()
        told.append(
            float(
                not by
                and any(name in small for name in folded)
                and named(text) is not None
                and named(without_address(text)) is not None
            )
        )
    return np.array(told)


def _nearness(moments: npt.NDArray[np.int64], spans: Sequence[Span], fade_days: float) -> Column:
    """1 within any of the spans, fading with the distance from the nearest."""
    starts = np.array([span.start_us for span in spans])[:, None]
    ends = np.array([span.end_us for span in spans])[:, None]
    gaps_us = np.maximum(0, np.maximum(starts - moments, moments - ends)).min(axis=0)
    near: Column = np.exp(-gaps_us / (DAY_US * max(fade_days, 1e-3)))
    return near


def _recency(
    intent: Intent, moments: npt.NDArray[np.int64], relevance: Column, weights: Weights
) -> Column:
    """How late a memory is among those that are about the thing at all."""
    part = np.zeros(len(moments))
    about = relevance >= ABOUT_SHARE * relevance.max()
    distinct, place = np.unique(moments[about], return_inverse=True)
    if len(distinct) == 1 or relevance.max() <= 0:
        return part
    late = place / (len(distinct) - 1)
    weight = weights.recency if intent.order is None else weights.recency_asked
    part[about] = weight * (1 - late if intent.order == "first" else late)
    return part


def _context(
    candidates: Sequence[Candidate],
    relevance: Column,
    weights: Weights,
    runs: Iterable[Sequence[int]],
) -> dict[str, Column]:
    """Credit from the turns beside a memory and from the best of its session."""
    # Not every language and no code parts its words by spaces.
    words = np.array(
        [
            max(candidate.content.count(" ") + 1, len(candidate.content) // LETTERS_PER_WORD_MAX)
            for candidate in candidates
        ]
    )
    damping = np.minimum(1.0, weights.context_words / words)
    parts: dict[str, Column] = {}
    # A long text gives as little as it takes: it touches on many things.
    given = relevance * damping
    if beside := turns_beside([candidate.num for candidate in candidates], runs):
        # One more place, worth nothing, stands for a turn that is not there.
        credit = np.append(given, 0.0)
        before, after = credit[beside.before], credit[beside.after]
        before2, after2 = credit[beside.before[beside.before]], credit[beside.after[beside.after]]
        speaker = _speakers(candidates)
        before = before * np.where(speaker[beside.before] == speaker, MONOLOGUE_RATE, 1.0)
        after = after * np.where(speaker[beside.after] == speaker, MONOLOGUE_RATE, 1.0)
        parts["turns"] = damping * (
            weights.turn_next * np.maximum(before, after)[:-1]
            + weights.turn_second * np.maximum(before2, after2)[:-1]
        )
        asks = [candidate.content.rstrip().endswith("?") for candidate in candidates]
        asked = np.array([*asks, False])[beside.before]
        parts["reply"] = damping * weights.reply * (before * asked)[:-1]
    best = session_best([candidate.session_id for candidate in candidates], given)
    parts["session"] = damping * weights.session * best
    return parts


def _speakers(candidates: Sequence[Candidate]) -> npt.NDArray[np.intp]:
    """A number for each author, with one more at the end for nobody."""
    number: dict[str | None, int] = {}
    authors = (candidate.author for candidate in candidates)
    return np.array([*(number.setdefault(author, len(number)) for author in authors), -1])
