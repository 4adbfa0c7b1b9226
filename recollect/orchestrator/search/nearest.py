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
from recollect.orchestrator.search.scopes import Hits, Scopes
from recollect.orchestrator.search.vectors import Held, Numbers, VectorIndex
from recollect.orchestrator.storage.interface import Session

SELECT_AMONG = "SELECT num FROM memories WHERE num IN ({marks}) AND {condition}"
WEAK_SHARE = 0.1
"""A scope that leaves at least this share of all is searched inside the index."""
MARKS_MAX = 1_000


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
            share, _ = self.share(session, scope.narrow)
            if share >= WEAK_SHARE:
                return self._widely(session, held, vector, k, scope, int(2 * k / share))
            allowed = self.listed(session, scope.narrow)
        return self._widely(session, held, vector, k, scope, k + k // 4, allowed)

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
