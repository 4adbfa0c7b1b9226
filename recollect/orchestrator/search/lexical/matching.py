"""The matches of one query, scored by BM25, on any storage.

A match costs time, so terms are read from the rarest on until a budget of matches is spent. What is
left over is common, says little, and only adds to the scores of memories that hold one of the
rarest terms. Should a caller need more results than the terms so far have brought, the rest is
read after all: nobody goes short because of a word that is common elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.interface import Hits, Numbers
from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.search.lexical.survivors import Fitting, Survivors

Postings = tuple[Numbers, Numbers]
"""Memories in ascending order, and how often each holds the term."""

TERMS_READ_MAX = 64
SATURATION = 1.2
LENGTH_SHARE = 0.75
"""BM25's k1 and b, as FTS5 has them."""

COMMON_SHARE = 0.1
"""What a word that most memories hold counts of what it would by a formula that is never 0."""

MATCHES_MIN = 40_000
MATCHES_SHARE = 0.2
MATCHES_MAX = 200_000
"""The budget: a share of the store between two bounds."""
NOTHING: Numbers = np.zeros(0, dtype=np.int64)
DRIVEN_MAX = 10_000
"""Common terms are looked for only beside terms with at most so many matches together."""


class Source(Fitting, Protocol):
    """Where the words of memories stand, as one session sees it."""

    lengths: NDArray[np.uint16]
    """How many words each memory has, by number; right at the latest for those of which a term was
    read."""
    store_texts: int
    """How many memories there are."""
    texts: int
    """How many of them the query is about: all, or those within its home."""
    words: int
    """How many words these have."""
    within: Numbers | None
    """The home, in ascending order: the only memories there are, as far as the query is concerned;
    what others hold does not make a word common."""

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        """In how many memories of the whole store each term stands, roughly."""
        ...

    def cost(self, term: Term, frequency: int) -> int:
        """What reading a term takes, in matches."""
        ...

    def read(self, term: Term, frequency: int) -> Postings:
        """The memories that hold a term, which has about this frequency."""
        ...

    def read_common(self, term: Term, drivers: Sequence[Term], scored: Numbers) -> Postings:
        """Those that hold a term and any of some others, which are rare and were read: `scored` are
        all that hold one of these."""
        ...

    def read_newest(self, terms: Sequence[Term], count_max: int) -> Postings:
        """The newest that hold all of some terms."""
        ...


class Scores:
    """A score for every number, grown term by term."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lengths = lengths = source.lengths
        within = source.within
        self._within = None if within is None else within[within < len(lengths)]
        self._texts, self._words = max(source.texts, 1), max(source.words, 1)
        # Only the pages that hold a match are ever touched.
        self.values: NDArray[np.float64] = np.zeros(len(lengths), dtype=np.float64)
        self._lists: list[Numbers] = []

    def add(self, postings: Postings, weight: float, frequency: int | None = None) -> None:
        """Count a term for each of its memories."""
        docs, counts = self._known(postings)
        if not len(docs):
            return
        self._lists.append(docs)
        self.values[docs] += self._weigh(docs, counts, weight, frequency or len(docs))

    def add_to_known(self, postings: Postings, weight: float, frequency: int) -> None:
        """Count a term for those of its memories that have a score already."""
        docs, counts = self._known(postings)
        if self._within is not None:
            frequency = len(docs)
        scored = self.values[docs] > 0
        docs, counts = docs[scored], counts[scored]
        self.values[docs] += self._weigh(docs, counts, weight, max(frequency, len(docs)))

    def emptied(self) -> Scores:
        """The same store without any score."""
        return Scores(self._source)

    def matches(self) -> Numbers:
        """All numbers with a score, some of them repeated."""
        return np.concatenate(self._lists) if self._lists else np.zeros(0, dtype=np.int64)

    def _known(self, postings: Postings) -> Postings:
        """Without what was written since the lengths were read, as far as that can be seen."""
        docs, counts = postings
        if len(docs) and docs[-1] >= len(self.values):
            known = docs < len(self.values)
            docs, counts = docs[known], counts[known]
        if self._within is not None and len(docs):
            places = np.searchsorted(docs, self._within)
            places[places == len(docs)] = 0
            places = places[docs[places] == self._within]
            docs, counts = docs[places], counts[places]
        return docs, counts

    def _weigh(
        self, docs: Numbers, counts: Numbers, weight: float, frequency: int
    ) -> NDArray[np.float64]:
        odds = (max(0, self._texts - frequency) + 0.5) / (frequency + 0.5)
        # As FTS5 has it, except that a word of most memories still counts a little.
        rarity = max(math.log(odds), COMMON_SHARE * math.log1p(odds))
        slope = SATURATION * LENGTH_SHARE * self._texts / self._words
        norms = self._lengths[docs] * slope
        norms += SATURATION * (1 - LENGTH_SHARE)
        norms += counts
        weighed: NDArray[np.float64] = counts / norms
        weighed *= weight * rarity * (SATURATION + 1)
        return weighed


class RankedMatches:
    """What a query matches, as one session sees it."""

    def __init__(self, source: Source, terms: Sequence[Term]) -> None:
        self._source = source
        # With what each was found to have of matches.
        self._unread: list[tuple[Term, int]] = []
        self._scores = Scores(source)
        if source.texts and terms:
            counted = zip(terms, source.frequencies(terms), strict=True)
            ranked = sorted((c for c in counted if c[1]), key=lambda pair: pair[1])
            self._read(ranked[:TERMS_READ_MAX], _budget(source.store_texts))

    def best(
        self,
        condition: Condition,
        limit: int,
        offset: int = 0,
        allowed: Numbers | None = None,
    ) -> Hits:
        wanted = offset + limit
        survivors = Survivors(self._source, condition)
        found: Hits = []
        for scores in self._stages():
            values = scores.values
            if allowed is not None:
                matches = allowed[(allowed >= 0) & (allowed < len(values))]
            else:
                matches = scores.matches()
            ceiling = found[-1][1] if found else math.inf
            left, chosen = wanted - len(found), allowed is not None
            for num in survivors.best_first(matches, values, left, chosen=chosen):
                found.append((num, min(float(values[num]), ceiling)))
            if len(found) >= wanted:
                break
        return found[offset:wanted]

    def score(self, nums: Sequence[int]) -> dict[int, float]:
        chosen = np.asarray(nums, dtype=np.int64)
        values = self._scores.values
        chosen = chosen[(chosen >= 0) & (chosen < len(values))]
        found = values[chosen]
        matching = found > 0
        return dict(zip(chosen[matching].tolist(), found[matching].tolist(), strict=True))

    def _read(self, ranked: Sequence[tuple[Term, int]], budget: int) -> None:
        source, scores = self._source, self._scores
        left = budget
        drivers: list[Term] = []
        matches = 0
        for term, frequency in ranked:
            cost = source.cost(term, frequency)
            if cost > left:
                self._unread.append((term, frequency))
                continue
            left -= cost
            matches += frequency
            scores.add(source.read(term, frequency), term.weight)
            if matches <= DRIVEN_MAX:
                drivers.append(term)
        unread = self._unread
        if drivers:
            driven = np.unique(scores.matches()) if unread else NOTHING
            for term, frequency in unread:
                postings = source.read_common(term, drivers, driven)
                scores.add_to_known(postings, term.weight, frequency)
        elif unread and not matches:
            # Every term is common, so those that hold all of them are all that is worth ranking.
            newest = source.read_newest([term for term, _ in unread], budget)
            for term, frequency in unread:
                scores.add(newest, term.weight, frequency)

    def _stages(self) -> Iterator[Scores]:
        """The scores so far; then, if that was not all, those by the terms left over."""
        yield self._scores
        if self._unread:
            later = self._scores.emptied()
            for term, frequency in self._unread:
                later.add(self._source.read(term, frequency), term.weight)
            later.values[self._scores.matches()] = 0.0
            yield later


def _budget(texts: int) -> int:
    return min(MATCHES_MAX, max(MATCHES_MIN, int(MATCHES_SHARE * texts)))
