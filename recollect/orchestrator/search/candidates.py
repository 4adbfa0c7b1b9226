"""The memories that may answer a question: found by words, by meaning, or beside one that was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.rows import MemoryRow, strength_at
from recollect.orchestrator.search.authorship import author_of, metadata_of, moment_us_of
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.search.nearest import NearestFinder, among
from recollect.orchestrator.search.ranking import Candidate
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.storage.interface import Session

LEADING = 20
"""The best of each list, around which turns are looked at."""
SESSIONS_MAX = 2 * LEADING
SESSION_NUMS_MAX = 5_000
IN_SESSION = """
SELECT num FROM memories WHERE session_id = ? AND deleted_us IS NULL ORDER BY num LIMIT ?
"""

Rows = dict[int, MemoryRow]


class Gathered(msgspec.Struct, frozen=True):
    """Candidates with their rows, and the sessions they stand in, turn by turn."""

    candidates: list[Candidate]
    rows: Rows
    runs: list[list[int]]


class Gathering:
    """Collects candidates, in one read."""

    def __init__(
        self,
        store: MemoryStore,
        lexical: LexicalIndex,
        nearest: NearestFinder,
        *,
        depth: int,
        turns_around: int,
    ) -> None:
        self._store = store
        self._lexical = lexical
        self._nearest = nearest
        self._depth = depth
        self._turns_around = turns_around

    def by_words(
        self, session: Session, words: str, scope: Scope, wanted: int
    ) -> list[tuple[int, float]]:
        """The best by their words."""
        home = self._nearest.home(session, scope)
        depth = max(self._depth, wanted)
        return self._lexical.find(session, words, scope.condition, depth, 0, home)

    def gather(
        self,
        session: Session,
        *,
        lexical: Sequence[tuple[int, float]],
        meaning: Meaning,
        vector: Vectors | None,
        scope: Scope,
        wanted: int,
        now_us: int,
    ) -> Gathered:
        """All that may answer, each with its scores: by words if it is among the best by words, by
        meaning if it has a vector."""
        scores = dict(lexical)
        nums = dict.fromkeys(scores)
        leading = [num for num, _ in lexical[:LEADING]]
        if vector is not None:
            near = self._nearest.find(
                session, meaning.index, vector, max(self._depth, wanted), scope
            )
            nums |= dict.fromkeys(num for num, _ in near)
            leading += [num for num, _ in near[:LEADING]]
        rows: Rows = {row.num: row for row, _ in self._rows(session, nums)}
        runs, beside = self._beside(session, rows, leading)
        if beside:
            fitting = among(session, beside, scope.condition)
            rows |= {row.num: row for row, _ in self._rows(session, fitting)}
        candidates = self._candidates(rows, scores, meaning, vector, now_us)
        return Gathered(candidates, rows, runs)

    def _rows(self, session: Session, nums: Iterable[int]) -> list[tuple[MemoryRow, None]]:
        return self._store.rows_of(session, [(num, None) for num in nums])

    def _candidates(
        self,
        rows: Rows,
        scores: dict[int, float],
        meaning: Meaning,
        vector: Vectors | None,
        now_us: int,
    ) -> list[Candidate]:
        nums = np.fromiter(rows, dtype=np.int64, count=len(rows))
        similar = [None] * len(nums)
        if vector is not None and len(nums):
            found = meaning.index.similarities(vector, nums).tolist()
            similar = [None if value != value else value for value in found]
        return [
            candidate_of(row, scores.get(row.num), similarity, now_us)
            for row, similarity in zip(rows.values(), similar, strict=True)
        ]

    def _beside(
        self, session: Session, rows: Rows, leading: list[int]
    ) -> tuple[list[list[int]], list[int]]:
        """The sessions of the best hits, and the turns around each that are no hits themselves."""
        by_session: dict[str, list[int]] = {}
        for num in leading:
            row = rows.get(num)
            if row is not None and row.session_id is not None:
                by_session.setdefault(row.session_id, []).append(num)
        runs: list[list[int]] = []
        beside: set[int] = set()
        for session_id in list(by_session)[:SESSIONS_MAX]:
            listed = session.execute(IN_SESSION, (session_id, SESSION_NUMS_MAX))
            turns = [num for (num,) in listed]
            runs.append(turns)
            place_of = {num: place for place, num in enumerate(turns)}
            for num in by_session[session_id]:
                if (place := place_of.get(num)) is not None:
                    first = max(0, place - self._turns_around)
                    beside.update(turns[first : place + self._turns_around + 1])
        return runs, sorted(beside - rows.keys())


def candidate_of(
    row: MemoryRow, lexical: float | None, similarity: float | None, now_us: int
) -> Candidate:
    """A memory as the ranking sees it."""
    metadata = metadata_of(row)
    return Candidate(
        num=row.num,
        content=row.content,
        lexical=lexical,
        similarity=similarity,
        author=author_of(row.created_by, metadata),
        session_id=row.session_id,
        moment_us=moment_us_of(row, metadata),
        importance=row.importance,
        strength=strength_at(row, now_us),
    )
