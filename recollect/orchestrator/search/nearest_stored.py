"""The nearest memories within a scope, where the database itself holds the index of vectors.

A scope that leaves little is compared one by one. Where it leaves much, the index is asked for the
nearest one after the other, each is checked against the scope, and that goes on until there are
enough. Either way the scope applies before the best are taken.
"""

from __future__ import annotations

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.search.scopes import Hits, Scopes
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.search.vectors.pgvector import EXACT_MAX, PgvectorIndex
from recollect.orchestrator.storage.interface import Session

WALKED_MAX = 10_000
"""How many the index may have to bring until enough of them fit; it gives up after 20,000."""


class NearestStored(Scopes):
    """Finds through the database's own index."""

    def find(
        self, session: Session, index: VectorIndex, vector: Vectors, k: int, scope: Scope
    ) -> Hits:
        """Numbers and similarities of the k nearest living memories of a scope, best first."""
        assert isinstance(index, PgvectorIndex)
        held = index.seen_by(session)
        few = False
        if scope.narrow is not None and held.are_many():
            estimate = self.estimate(session, scope.narrow)
            few = estimate.number <= EXACT_MAX or k > WALKED_MAX * estimate.share
        return held.find(vector, k, scope.condition, few=few)

    def at_hand(self, scope: Scope, seq: int) -> bool:
        """What is in a scope is known to the database alone."""
        return False
