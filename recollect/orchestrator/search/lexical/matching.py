"""The matches of one query, scored by BM25.

A match costs time, so terms are read from the rarest on until a budget of matches is spent. What is
left over is common, says little, and only adds to the scores of memories that hold one of the
rarest terms. Should a caller need more results than the terms so far have brought, the rest is
read after all: nobody goes short because of a word that is common elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.common import CommonWords
from recollect.orchestrator.search.lexical.interface import Hits
from recollect.orchestrator.search.lexical.postings import (
    Frequencies,
    Numbers,
    Postings,
    read_common,
    read_newest,
    totals,
)
from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.search.lexical.survivors import Survivors
from recollect.orchestrator.storage.interface import Session

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
KEPT_COST = 0.2
"""What a match counts whose list is kept in memory."""
DRIVEN_MAX = 10_000
"""Common terms are looked for only beside terms with at most so many matches together."""


class Scores:
    """A score for every number, grown term by term."""

    def __init__(
        self,
        lengths: NDArray[np.uint16],
        texts: int,
        words: int,
        within: Numbers | None = None,
    ) -> None:
        """`within`, in ascending order, are the only memories that there are, as far as this query
        is concerned; what others hold does not make a word common."""
        self._lengths = lengths
        self._within = within
        if within is not None:
            self._within = within = within[within < len(lengths)]
            held = lengths[within]
            texts, words = int((held > 0).sum()), int(held.sum(dtype=np.int64))
        self._texts, self._words = max(texts, 1), max(words, 1)
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
        return Scores(self._lengths, self._texts, self._words, self._within)

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


class Fts5Matches:
    """What a query matches, as one session sees it."""

    def __init__(
        self,
        session: Session,
        terms: Sequence[Term],
        lengths: NDArray[np.uint16],
        frequencies: Frequencies,
        common: CommonWords,
        seq: int,
        within: Numbers | None = None,
    ) -> None:
        self._session = session
        self._common = common
        self._seq = seq
        self._unread: list[Term] = []
        texts, words = totals(session)
        self._scores = Scores(lengths, texts, words, within)
        if texts and terms:
            counted = zip(terms, frequencies.of(session, terms, texts), strict=True)
            ranked = sorted((c for c in counted if c[1]), key=lambda pair: pair[1])
            self._read(ranked[:TERMS_READ_MAX], _budget(texts))

    def best(
        self,
        condition: Condition,
        limit: int,
        offset: int = 0,
        allowed: Sequence[int] | None = None,
    ) -> Hits:
        wanted = offset + limit
        survivors = Survivors(self._session, condition)
        found: Hits = []
        for scores in self._stages():
            values = scores.values
            if allowed is not None:
                matches = np.asarray(allowed, dtype=np.int64)
                matches = matches[(matches >= 0) & (matches < len(values))]
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
        session, scores = self._session, self._scores
        left = budget
        drivers: list[Term] = []
        unread: list[tuple[Term, int]] = []
        matches = 0
        for term, frequency in ranked:
            cost = int(KEPT_COST * frequency) if self._common.knows(term) else frequency
            if cost > left:
                unread.append((term, frequency))
                continue
            left -= cost
            matches += frequency
            scores.add(self._common.read(session, term, self._seq), term.weight)
            if matches <= DRIVEN_MAX:
                drivers.append(term)
        self._unread = [term for term, _ in unread]
        if drivers:
            for term, frequency in unread:
                scores.add_to_known(read_common(session, term, drivers), term.weight, frequency)
        elif unread and not matches:
            # Every term is common, so those that hold all of them are all that is worth ranking.
            newest = read_newest(session, self._unread, budget)
            for term, frequency in unread:
                scores.add(newest, term.weight, frequency)

    def _stages(self) -> Iterator[Scores]:
        """The scores so far; then, if that was not all, those by the terms left over."""
        yield self._scores
        if self._unread:
            later = self._scores.emptied()
            for term in self._unread:
                later.add(self._common.read(self._session, term, self._seq), term.weight)
            later.values[self._scores.matches()] = 0.0
            yield later


def _budget(texts: int) -> int:
    return min(MATCHES_MAX, max(MATCHES_MIN, int(MATCHES_SHARE * texts)))
