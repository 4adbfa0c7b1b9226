"""The nearest memories within a scope, in the way that costs least.

A scope that leaves few memories is listed, and the query compared with each of them exactly. Where
it leaves many, the index is searched more widely than asked and what it finds is checked against
the scope, until there are enough. Either way the scope applies before the best are taken: k are
found where k exist. How many it leaves is estimated on a random sample.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.search.vectors import Numbers, VectorIndex
from recollect.orchestrator.storage.interface import Session
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.listed import numbers

# A list leaves the database fastest as one value.
SELECT_NUMS = "SELECT string_agg(CAST(num AS TEXT), ',') FROM memories WHERE {condition}"
SELECT_SOME_NUMS = """
SELECT string_agg(CAST(num AS TEXT), ',')
FROM (SELECT num FROM memories WHERE {condition} LIMIT ?) AS listed
"""
SELECT_AMONG = "SELECT num FROM memories WHERE num IN ({marks}) AND {condition}"
SAMPLE = """
SELECT count(*), coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)
FROM memories WHERE num IN ({marks})
"""
SAMPLE_NUMS = 256
WEAK_SHARE = 0.1
"""A scope that leaves at least this share of all is searched inside the index."""
MARKS_MAX = 1_000
HOME_NUMS_MAX = 20_000
"""A namespace of no more memories is ranked by how common words are within it."""
LISTS_KEPT_MAX = 32
LIST_NUMS_KEPT_MAX = 200_000
# Reads move these without a change that is counted, so a list by them is never kept.
UNCOUNTED = ("access_count", "last_access_us", "fades_us")

Hits = list[tuple[int, float]]


class NearestFinder:
    """Finds by vector within scopes. Any thread may use it."""

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness
        # Lists of scopes asked for lately, each good until the next change. Only a shortcut:
        # threads may overwrite each other's.
        self._lists: OrderedDict[tuple[Any, ...], tuple[int, Numbers | None]] = OrderedDict()

    def find(
        self, session: Session, index: VectorIndex, vector: Vectors, k: int, scope: Scope
    ) -> Hits:
        """Numbers and similarities of the k nearest living memories of a scope, best first."""
        if scope.narrow is None:
            return self._widely(session, index, vector, k, scope, k + k // 4)
        allowed = self.home(session, scope) if scope.narrow == scope.namespace else None
        if allowed is None:
            share = self._share(session, scope.narrow)
            if share >= WEAK_SHARE:
                return self._widely(session, index, vector, k, scope, int(2 * k / share))
            allowed = self._listed(session, scope.narrow)
        return self._widely(session, index, vector, k, scope, k + k // 4, allowed)

    def _widely(
        self,
        session: Session,
        index: VectorIndex,
        vector: Vectors,
        k: int,
        scope: Scope,
        wanted: int,
        allowed: Numbers | None = None,
    ) -> Hits:
        """Search for more than k, until k of what was found are in the scope and alive."""
        available = len(index) if allowed is None else len(allowed)
        condition = scope.condition
        while True:
            hits = index.search(vector, min(wanted, max(available, 1)), allowed)
            fitting = among(session, [num for num, _ in hits], condition)
            found = [(num, score) for num, score in hits if num in fitting]
            if len(found) >= k or len(hits) < wanted:
                return found[:k]
            wanted *= 4

    def home(self, session: Session, scope: Scope) -> Numbers | None:
        """The memories of the scope's namespace, in ascending order; None if they are many."""
        if scope.namespace is None:
            return None
        return self._listed(session, scope.namespace, HOME_NUMS_MAX)

    def _share(self, session: Session, condition: Condition) -> float:
        """About how much of all memories fits a condition."""
        [(last, _)] = session.execute(READ_LEDGER)
        count = min(SAMPLE_NUMS, int(last))
        if not count:
            return 0.0
        sample = [self._randomness.randint(1, int(last)) for _ in range(count)]
        sql, params = condition
        marks = ", ".join("?" for _ in sample)
        statement = SAMPLE.format(condition=sql, marks=marks)
        [(seen, fitting)] = session.execute(statement, (*params, *sample))
        return float(fitting) / seen if seen else 0.0

    def _listed(
        self, session: Session, condition: Condition, most: int | None = None
    ) -> Numbers | None:
        """The numbers that fit a condition, in ascending order; None if there are too many."""
        sql, params = condition
        key = (most, sql, *params)
        [(seq, _)] = session.execute(READ_LEDGER)
        kept = self._lists.get(key)
        if kept is not None and kept[0] == seq:
            return kept[1]
        if most is None:
            statement, bound = SELECT_NUMS.format(condition=sql), params
        else:
            statement, bound = SELECT_SOME_NUMS.format(condition=sql), [*params, most + 1]
        [(listed,)] = session.execute(statement, bound)
        nums: Numbers | None = np.sort(numbers(listed))
        assert nums is not None
        # The index knows a list again that surely stays as it is.
        nums.flags.writeable = False
        if most is not None and len(nums) > most:
            nums = None
        lasting = not any(column in sql for column in UNCOUNTED)
        if lasting and (nums is None or len(nums) <= LIST_NUMS_KEPT_MAX):
            self._lists[key] = (seq, nums)
            while len(self._lists) > LISTS_KEPT_MAX:
                try:
                    self._lists.popitem(last=False)
                except KeyError:
                    break
        return nums


def among(session: Session, nums: Sequence[int], condition: Condition) -> set[int]:
    """Those of some memories that fit a condition."""
    sql, params = condition
    fitting: set[int] = set()
    for start in range(0, len(nums), MARKS_MAX):
        part = nums[start : start + MARKS_MAX]
        marks = ", ".join("?" for _ in part)
        found = session.execute(SELECT_AMONG.format(marks=marks, condition=sql), (*part, *params))
        fitting.update(num for (num,) in found)
    return fitting
