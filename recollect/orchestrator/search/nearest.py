"""The nearest memories within a scope, in the way that costs least.

A scope that leaves few memories is listed, and the query compared with each of them exactly. Where
it leaves many, the index is searched more widely than asked and what it finds is checked against
the scope, until there are enough. Either way the scope applies before the best are taken: k are
found where k exist. How many it leaves is estimated on a random sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.search.scopes import (
    HOME_NUMS_MAX,
    WEAK_SHARE,
    Estimate,
    Hits,
    Scopes,
)
from recollect.orchestrator.search.vectors import Held, Numbers, VectorIndex
from recollect.orchestrator.storage.interface import Session

SELECT_AMONG = "SELECT num FROM memories WHERE num IN ({marks}) AND {condition}"
MARKS_MAX = 1_000


LISTED_WEAK_MAX = 20_000
ASKED_OFTEN = 8
"""A scope of no more memories that is asked for so often is listed, although it leaves many: the
list is made once and then kept up."""


class NearestInProcess(Scopes):
    """Finds through an index of this process, which knows no scopes."""

    def find(
        self, session: Session, index: VectorIndex, vector: Vectors, k: int, scope: Scope
    ) -> Hits:
        """Numbers and similarities of the k nearest living memories of a scope, best first."""
        held = index.seen_by(session)
        if scope.narrow is None:
            return self._widely(session, held, vector, k, scope, k + k // 4)
        allowed = self.home(session, scope) if scope.narrow == scope.namespace else None
        if allowed is None:
            estimate = self.estimate(session, scope.narrow)
            if estimate.share >= WEAK_SHARE and not _worth_listing(estimate):
                return self._widely(session, held, vector, k, scope, int(2 * k / estimate.share))
            allowed = self.listed(session, scope.narrow)
        return self._widely(session, held, vector, k, scope, k + k // 4, allowed)

    def at_hand(self, scope: Scope, seq: int) -> bool:
        """Whether what is in a scope is known already, but for a few of the changes up to a last
        one, so that finding the nearest is quick."""
        narrow = scope.narrow
        if narrow is None:
            return True
        if narrow == scope.namespace and self.is_listed(narrow, seq, HOME_NUMS_MAX):
            return True
        return self.is_listed(narrow, seq)

    def _widely(
        self,
        session: Session,
        held: Held,
        vector: Vectors,
        k: int,
        scope: Scope,
        wanted: int,
        allowed: Numbers | None = None,
    ) -> Hits:
        """Search for more than k, until k of what was found are in the scope and alive."""
        available = held.count() if allowed is None else len(allowed)
        condition = scope.condition
        while True:
            hits = held.search(vector, min(wanted, max(available, 1)), allowed)
            fitting = among(session, [num for num, _ in hits], condition)
            found = [(num, score) for num, score in hits if num in fitting]
            if len(found) >= k or len(hits) < wanted:
                return found[:k]
            wanted *= 4


def _worth_listing(estimate: Estimate) -> bool:
    return estimate.asked >= ASKED_OFTEN and estimate.number <= LISTED_WEAK_MAX


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
