"""The memories that may answer a question: found by words, by meaning, or beside one that was."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.passages import best_similarities
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow, strength_at
from recollect.orchestrator.search.authorship import author_of, metadata_of, moment_us_of
from recollect.orchestrator.search.lexical import LexicalIndex, Matches
from recollect.orchestrator.search.neighbours import AFTER, BEFORE
from recollect.orchestrator.search.ranking import Candidate
from recollect.orchestrator.search.scope import Scope
from recollect.orchestrator.search.scopes import Nearest
from recollect.orchestrator.storage.interface import Session

LEADING = 15
"""The best of each list, around which turns are looked at."""
NEAR_BY_PASSAGES = 160
WORDED_BY_PASSAGES = 80
"""Of the nearest and of the best by words, those whose passages are looked at too."""

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
        nearest: Nearest,
        *,
        turns_around: int,
    ) -> None:
        self._store = store
        self._lexical = lexical
        self._nearest = nearest
        self._turns_around = turns_around

    def by_words(
        self, session: Session, words: str, scope: Scope, depth: int
    ) -> list[tuple[int, float]]:
        """The best by their words."""
        matches = self._lexical.match(session, words, self._nearest.home(session, scope))
        return self._best(session, matches, scope, depth)

    def by_words_in_each(
        self, session: Session, words: str, scopes: Sequence[Scope], depth: int
    ) -> list[list[tuple[int, float]]]:
        """The best by their words in each of some scopes of one namespace; matched only once."""
        matches = self._lexical.match(session, words, self._nearest.home(session, scopes[0]))
        return [self._best(session, matches, scope, depth) for scope in scopes]

    def _best(
        self, session: Session, matches: Matches, scope: Scope, depth: int
    ) -> list[tuple[int, float]]:
        """The best matches of a scope. Where it leaves little, every match would have to be looked
        at to find that few or none of them fit, so what it leaves is listed first."""
        few = self._nearest.few(session, scope)
        if few is None:
            return matches.best(scope.condition, depth)
        if not len(few):
            return []
        return matches.best(scope.condition, min(depth, len(few)), 0, few)

    def gather(
        self,
        session: Session,
        *,
        lexical: Sequence[tuple[int, float]],
        meaning: Meaning,
        vector: Vectors | None,
        scope: Scope,
        depth: int,
        now_us: int,
    ) -> Gathered:
        """All that may answer, each with its scores: by words if it is among the best by words, by
        meaning if it has a vector."""
        scores = dict(lexical)
        nums = dict.fromkeys(scores)
        leading = [num for num, _ in lexical[:LEADING]]
        if vector is not None:
            near = self._nearest.find(session, meaning.index, vector, depth, scope)
            nums |= dict.fromkeys(num for num, _ in near)
            leading += [num for num, _ in near[:LEADING]]
        # The words were matched in a read of their own: what has left the scope since is not given.
        hits = [(num, None) for num in nums]
        fitting = self._store.rows_of(session, hits, scope.condition)
        rows: Rows = {row.num: row for row, _ in fitting}
        runs = self._runs(session, rows, leading, scope)
        beside = {num for run in runs for num in run} - rows.keys()
        rows |= {row.num: row for row, _ in self._rows(session, sorted(beside))}
        similar: dict[int, float] = {}
        if vector is not None and rows:
            similar = _similarities(session, meaning, vector, rows)
            if meaning.embedding.has_passages:
                self._raise(session, meaning, vector, similar, lexical)
        candidates = [
            candidate_of(row, scores.get(num), similar.get(num), now_us)
            for num, row in rows.items()
        ]
        return Gathered(candidates, rows, runs)

    def _rows(self, session: Session, nums: Iterable[int]) -> list[tuple[MemoryRow, None]]:
        return self._store.rows_of(session, [(num, None) for num in nums])

    def _raise(
        self,
        session: Session,
        meaning: Meaning,
        vector: Vectors,
        similar: dict[int, float],
        lexical: Sequence[tuple[int, float]],
    ) -> None:
        """Let the best memories be as near as their nearest passage."""
        nearest = heapq.nlargest(NEAR_BY_PASSAGES, similar, key=similar.__getitem__)
        worded = [num for num, _ in lexical[:WORDED_BY_PASSAGES] if num in similar]
        kept = self._store.vectors.passages_of(
            session, meaning, [*dict.fromkeys([*nearest, *worded])]
        )
        if kept:
            best = best_similarities(vector, list(kept.values())).tolist()
            for num, similarity in zip(kept, best, strict=True):
                similar[num] = max(similar[num], similarity)

    def _runs(
        self, session: Session, rows: Rows, leading: Iterable[int], scope: Scope
    ) -> list[list[int]]:
        """The turns around each of the leading hits in its session, in their order."""
        if not self._turns_around:
            return []
        condition, params = scope.condition
        before, after = BEFORE.format(condition=condition), AFTER.format(condition=condition)
        runs: list[list[int]] = []
        for num in dict.fromkeys(leading):
            row = rows.get(num)
            if row is not None and row.session_id is not None:
                asked = (row.session_id, num, *params, self._turns_around)
                earlier = [n for (n,) in session.execute(before, asked)]
                later = [n for (n,) in session.execute(after, asked)]
                runs.append([*reversed(earlier), num, *later])
        return runs


def _similarities(
    session: Session, meaning: Meaning, vector: Vectors, rows: Rows
) -> dict[int, float]:
    """The cosines of those that have a vector."""
    nums = np.fromiter(rows, dtype=np.int64, count=len(rows))
    found = meaning.index.seen_by(session).similarities(vector, nums).tolist()
    return {num: value for num, value in zip(rows, found, strict=True) if value == value}


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
