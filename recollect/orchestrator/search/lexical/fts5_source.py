"""What FTS5 holds of the words of one query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.lexical.common import CommonWords
from recollect.orchestrator.search.lexical.frequencies import Frequencies
from recollect.orchestrator.search.lexical.interface import Numbers
from recollect.orchestrator.search.lexical.matching import Postings
from recollect.orchestrator.search.lexical.postings import read_common, read_newest, totals
from recollect.orchestrator.search.lexical.query import Term
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.listed import numbers

KEPT_COST = 0.2
"""What a match counts whose list is kept in memory."""

# The matches come first and are looked up by number, whatever else there is an index for.
FITTING = """
SELECT num FROM (SELECT value AS wanted_num FROM json_each(?)) CROSS JOIN memories
WHERE num = wanted_num AND {condition}
"""
LISTED = "SELECT group_concat(num) FROM memories WHERE {condition}"


class Fts5Source:
    """The words of a store as one session sees them after a change."""

    def __init__(
        self,
        session: Session,
        lengths: NDArray[np.uint16],
        frequencies: Frequencies,
        common: CommonWords,
        seq: int,
        within: Numbers | None,
    ) -> None:
        self._session = session
        self._frequencies = frequencies
        self._common = common
        self._seq = seq
        self.lengths = lengths
        self.within = within
        self.store_texts, self.words = totals(session)
        self.texts = self.store_texts
        if within is not None:
            held = lengths[within[within < len(lengths)]]
            self.texts, self.words = int((held > 0).sum()), int(held.sum(dtype=np.int64))

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        return self._frequencies.of(self._session, terms, self.store_texts)

    def cost(self, term: Term, frequency: int) -> int:
        return int(KEPT_COST * frequency) if self._common.knows(term) else frequency

    def read(self, term: Term, frequency: int) -> Postings:
        return self._common.read(self._session, term, self._seq)

    def read_common(self, term: Term, drivers: Sequence[Term], scored: Numbers) -> Postings:
        return read_common(self._session, term, drivers)

    def read_newest(self, terms: Sequence[Term], count_max: int) -> Postings:
        return read_newest(self._session, terms, count_max)

    def fitting(self, nums: list[int], condition: Condition) -> set[int]:
        sql, params = condition
        statement = FITTING.format(condition=f"({sql})")
        rows = self._session.execute(statement, (encode_json(nums).decode(), *params))
        return {num for (num,) in rows}

    def listed(self, condition: Condition) -> Numbers | None:
        sql, params = condition
        statement = LISTED.format(condition=f"({sql})")
        plan = self._session.execute(f"EXPLAIN QUERY PLAN {statement}", params)
        if any(str(step[-1]).startswith("SCAN memories") for step in plan):
            return None
        [(listed,)] = self._session.execute(statement, params)
        return np.sort(numbers(listed))
