"""What helps with a task: how like ones went, and what was learned from these."""

from __future__ import annotations

from recollect.orchestrator.calls import Call
from recollect.orchestrator.learning import executions, patterns
from recollect.orchestrator.learning.executions import Execution
from recollect.orchestrator.learning.patterns import Pattern
from recollect.orchestrator.learning.posterior import best_first
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.similar import Question, Similar
from recollect.orchestrator.storage.interface import Session
from recollect.protocol.collection_names import EXECUTIONS, PATTERNS

PATTERNS_WEIGHED = 50
"""The nearest patterns, of which the best are taken."""


class Suggesting:
    """Finds by meaning; what was found is for the services to count as read."""

    def __init__(self, similar: Similar) -> None:
        self._similar = similar

    def executions(
        self,
        call: Call,
        session: Session,
        question: Question,
        k: int,
        *,
        threshold: float,
        namespace: str | None,
        only: Condition | None = None,
    ) -> list[tuple[Execution, float]]:
        """The executions of the nearest tasks."""
        near = self._similar.find(
            call,
            session,
            question,
            EXECUTIONS,
            k,
            namespace=namespace,
            threshold=threshold,
            only=only,
        )
        known = executions.with_columns(session, [row for row, _ in near])
        return [(known[row.num], score) for row, score in near if row.num in known]

    def patterns(
        self,
        call: Call,
        session: Session,
        question: Question,
        k: int,
        *,
        threshold: float,
        namespace: str | None,
    ) -> list[tuple[Pattern, float]]:
        """The patterns that fit best, by likeness and by how far they have proved themselves."""
        near = self._similar.find(
            call,
            session,
            question,
            PATTERNS,
            max(k, PATTERNS_WEIGHED),
            namespace=namespace,
            threshold=threshold,
        )
        likeness = {row.num: score for row, score in near}
        standing = {row.num: row.standing for row in patterns.rows_of(session, list(likeness))}
        ranked = best_first(
            [(row, score, standing[row.num]) for row, score in near if row.num in standing]
        )
        found = patterns.with_columns(session, ranked[:k], call.now_us)
        return [(pattern, likeness[pattern.memory.num]) for pattern in found]
