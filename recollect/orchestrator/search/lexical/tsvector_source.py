"""What PostgreSQL's full text holds of the words of one query.

How often a memory holds a word is read off `ts_rank`: with equal weights, the rank of one word that
stands n times is the sum of 1/j² for j from 1 to n, divided by what that sum tends to. The server
computes it while it looks at the match anyway; unpacking the words of every match would take more
than ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.frequencies import Frequencies
from recollect.orchestrator.search.lexical.interface import Numbers
from recollect.orchestrator.search.lexical.lengths import LENGTH_MAX
from recollect.orchestrator.search.lexical.matching import Postings
from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.search.lexical.tsvector_text import (
    PLACES_OF_WORD_MAX,
    counted_query_of,
    query_of,
)
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.listed import numbers

MATCH_COST = 8
"""A match takes longer here than in a file of this machine, so fewer are read within the budget."""
COUNTED_MAX = 250_000
"""No more memories of one word are counted; so common a word says nothing."""

# A list leaves the database fastest as one value.
HOLDING = """
SELECT
    string_agg(CAST(num AS TEXT), ','),
    string_agg(CAST(length AS TEXT), ','),
    string_agg(CAST(ts_rank('{{1, 1, 1, 1}}', words, CAST(? AS tsquery)) AS TEXT), ',')
FROM memory_words WHERE words @@ CAST(? AS tsquery){among}
"""
AMONG = " AND num = ANY (CAST(? AS BIGINT[]))"
NEWEST = """
SELECT string_agg(CAST(num AS TEXT), ','), string_agg(CAST(length AS TEXT), ','), NULL FROM (
    SELECT num, length FROM memory_words WHERE words @@ CAST(? AS tsquery)
    ORDER BY num DESC LIMIT ?
) AS newest
"""
COUNT = """
SELECT asked.word, (
    SELECT count(*) FROM (
        SELECT 1 FROM memory_words WHERE words @@ CAST(asked.query AS tsquery) LIMIT ?
    ) AS counted
) FROM unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[])) AS asked (word, query)
"""
FITTING = "SELECT num FROM memories WHERE num = ANY (CAST(? AS BIGINT[])) AND {condition}"
LISTED = "SELECT string_agg(CAST(num AS TEXT), ',') FROM memories WHERE {condition}"

_RANKS = np.cumsum(1 / np.arange(1, PLACES_OF_WORD_MAX + 1) ** 2) / 1.64493406685
"""The rank of a word that stands once, twice, …"""
_BETWEEN = (_RANKS[1:] + _RANKS[:-1]) / 2


class TsvectorSource:
    """The words of a store as one session sees them."""

    def __init__(
        self,
        session: Session,
        frequencies: Frequencies,
        store: tuple[int, int],
        home: tuple[int, int] | None,
        within: Numbers | None,
        newest: int,
    ) -> None:
        """How many texts and words the store has, and the home; and the last number given out."""
        self._session = session
        self._frequencies = frequencies
        self.store_texts = store[0]
        self.texts, self.words = store if home is None else home
        self.within = within
        # Only the pages that hold a match are ever touched.
        self.lengths: NDArray[np.uint16] = np.zeros(newest + 1, dtype=np.uint16)

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        return self._frequencies.of(self._session, terms, self.store_texts)

    def cost(self, term: Term, frequency: int) -> int:
        matches = frequency if self.within is None else min(frequency, len(self.within))
        return MATCH_COST * matches

    def read(self, term: Term, frequency: int) -> Postings:
        # Where the home is smaller than the list, only its memories are looked at.
        few = self.within is not None and len(self.within) < frequency
        return self._read(term, self.within if few else None)

    def read_common(self, term: Term, drivers: Sequence[Term], scored: Numbers) -> Postings:
        return self._read(term, scored)

    def read_newest(self, terms: Sequence[Term], count_max: int) -> Postings:
        query = " & ".join(f"({query_of(term)})" for term in terms)
        docs, _ = self._taken(self._session.execute(NEWEST, (query, count_max // MATCH_COST)))
        return docs, np.ones(len(docs), dtype=np.int64)

    def fitting(self, nums: list[int], condition: Condition) -> set[int]:
        sql, params = condition
        statement = FITTING.format(condition=f"({sql})")
        rows = self._session.execute(statement, (np.array(nums, dtype=np.int64), *params))
        return {num for (num,) in rows}

    def listed(self, condition: Condition) -> Numbers | None:
        sql, params = condition
        statement = LISTED.format(condition=f"({sql})")
        plan = self._session.execute(f"EXPLAIN {statement}", params)
        if any("Seq Scan on memories" in str(step) for (step,) in plan):
            return None
        [(listed,)] = self._session.execute(statement, params)
        return np.sort(numbers(listed))

    def _read(self, term: Term, among: Numbers | None) -> Postings:
        query = query_of(term)
        sql = HOLDING.format(among="" if among is None else AMONG)
        params = (query, query) if among is None else (query, query, among)
        docs, ranks = self._taken(self._session.execute(sql, params))
        if term.kind == "phrase":
            return docs, np.ones(len(docs), dtype=np.int64)
        if term.kind == "word":
            return docs, np.searchsorted(_BETWEEN, ranks) + 1
        # Of several words that begin alike, each that stands once has the same share.
        shares = ranks * len(term.tokens) / _RANKS[0]
        return docs, np.maximum(1, np.rint(shares)).astype(np.int64)

    def _taken(self, rows: list[Any]) -> tuple[Numbers, NDArray[np.float64]]:
        """The numbers that were read, in ascending order, with their ranks; lengths are kept."""
        [(listed, lengths, ranks)] = rows
        docs = numbers(listed)
        known = docs < len(self.lengths)
        order = np.flatnonzero(known)[np.argsort(docs[known])]
        docs = docs[order]
        self.lengths[docs] = np.minimum(numbers(lengths)[order], LENGTH_MAX)
        read = np.fromstring(ranks or "", dtype=np.float64, sep=",")
        return docs, read[order] if len(read) else read


def count_words(session: Session, words: Sequence[str]) -> dict[str, int]:
    """In how many memories each word stands, of those that any holds."""
    queries = [counted_query_of(word) for word in words]
    found = session.execute(COUNT, (COUNTED_MAX, list(words), queries))
    return {word: int(count) for word, count in found if count}
