"""What of all memories is in a scope: listed where it is little, estimated where it may be much."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import Any, Protocol

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
SAMPLE = """
SELECT count(*), coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)
FROM memories WHERE num IN ({marks})
"""
SAMPLE_NUMS = 256
HOME_NUMS_MAX = 20_000
"""A namespace of no more memories is ranked by how common words are within it."""
LISTS_KEPT_MAX = 32
LIST_NUMS_KEPT_MAX = 200_000
# Reads move these without a change that is counted, so a list by them is never kept.
UNCOUNTED = ("access_count", "last_access_us", "fades_us")

Hits = list[tuple[int, float]]


class Nearest(Protocol):
    """Finds by vector within scopes. Any thread may use it."""

    def find(
        self, session: Session, index: VectorIndex, vector: Vectors, k: int, scope: Scope
    ) -> Hits:
        """Numbers and similarities of the k nearest living memories of a scope, best first."""
        ...

    def home(self, session: Session, scope: Scope) -> Numbers | None:
        """The memories of the scope's namespace, in ascending order; None if they are many."""
        ...


class Scopes:
    """Looks into scopes. Any thread may use it."""

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness
        # Lists of scopes asked for lately, each good until the next change. Only a shortcut:
        # threads may overwrite each other's.
        self._lists: OrderedDict[tuple[Any, ...], tuple[int, Numbers | None]] = OrderedDict()

    def home(self, session: Session, scope: Scope) -> Numbers | None:
        """The memories of the scope's namespace, in ascending order; None if they are many."""
        if scope.namespace is None:
            return None
        return self.listed(session, scope.namespace, HOME_NUMS_MAX)

    def share(self, session: Session, condition: Condition) -> tuple[float, int]:
        """About how much of all memories fits a condition, and how many there are at the most."""
        [(last, _)] = session.execute(READ_LEDGER)
        count = min(SAMPLE_NUMS, int(last))
        if not count:
            return 0.0, 0
        sample = [self._randomness.randint(1, int(last)) for _ in range(count)]
        sql, params = condition
        marks = ", ".join("?" for _ in sample)
        statement = SAMPLE.format(condition=sql, marks=marks)
        [(seen, fitting)] = session.execute(statement, (*params, *sample))
        return (float(fitting) / seen if seen else 0.0), int(last)

    def listed(
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
