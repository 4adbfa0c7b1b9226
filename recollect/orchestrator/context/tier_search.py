"""Looks through every tier for what may help, and weighs all of it on one scale.

Each tier is searched on its own, by words and by meaning, so that a large one does not push a small
one out; what they give is ranked together, so that a score means the same wherever it comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np

from recollect.orchestrator.calls import Call
from recollect.orchestrator.context.belonging import pinned_nums, says_task
from recollect.orchestrator.context.tiers import condition_of, tier_of
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.rows import MemoryRow
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathered, Gathering, candidate_of
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.ranking import (
    Candidate,
    Intent,
    Weights,
    collapse,
    rank,
    read_query,
)
from recollect.orchestrator.search.scope import Scope, Scoping
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.protocol.errors import EmbedderUnavailable, Overloaded, Unsupported
from recollect.protocol.operations import AssembleContext
from recollect.protocol.operations.context import ContextTier

WORDLESS = "Found by meaning alone: this storage has no search by words yet."
MEANINGLESS = "Found by words alone: nothing can be embedded now."
RANKED_MIN, RANKED_MAX = 60, 400
TOKENS_A_PIECE = 25
"""Hardly a piece is shorter with its marks; so many more are not worth ranking."""
RELEVANT_SHARE = 0.3
"""What has less of the best score than this is about something else: two thirds of what a recall
gives beside the answers, and one answer of thirty."""
UNTRUSTED_RATE = 0.1
"""What is left of a memory's value if it is not trusted at all."""


class Considered(msgspec.Struct, frozen=True):
    """A memory that may go into a context."""

    row: MemoryRow
    tier: ContextTier
    score: float
    """Relevance and all else that a recall weighs; the same scale for all tiers."""
    value: float
    """What it is worth in this context, from 0 to 1: its score beside the best, and its trust."""
    first: bool
    """It belongs to the task at hand, or has just happened and is critical."""
    vector: Vectors | None


class Looked(msgspec.Struct, frozen=True):
    """The best of what was found, by falling score, and how much was weighed."""

    considered: list[Considered]
    weighed: int
    degraded: str | None


class Found(msgspec.Struct, frozen=True):
    """What the searches brought, before it is weighed."""

    intent: Intent
    meaning: Meaning
    vector: Vectors | None
    gathered: list[Gathered]
    pinned: list[int]
    """What comes first, whether a search brought it or not."""


class TierSearch:
    """Finds what a context may be made of."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        gathering: Gathering,
        depth: int,
        authors: Authors,
        scoping: Scoping,
        weights: Weights,
    ) -> None:
        self._storage = storage
        self._store = store
        self._gathering = gathering
        self._depth = depth
        self._authors = authors
        self._scoping = scoping
        self._weights = weights

    async def look(
        self,
        call: Call,
        operation: AssembleContext,
        tiers: Sequence[ContextTier],
        critical_ids: Sequence[str],
    ) -> Looked:
        """What the tiers have for a task, and the critical events of some ids."""
        whole = self._scoping.scope(
            call, call.now_us, namespace=operation.namespace, filters=operation.filters
        )
        trusted = operation.trust_min
        scopes = [narrowed(whole, [condition_of(tier, trusted)]) for tier in tiers]
        intent = await self._storage.read(
            lambda session: read_query(
                operation.task_description,
                self._authors.within(session, whole.namespace),
                call.now_us,
            )
        )
        pinned = self._storage.read(
            lambda session: pinned_nums(
                session,
                operation,
                narrowed(whole, [condition_of(tier, trusted) for tier in tiers]),
                critical_ids,
            )
        )
        meaning = self._store.meanings.current
        words = intent.search_text
        vector, by_words = await asyncio.gather(
            self._vector(meaning, intent),
            asyncio.gather(*(self._by_words(words, scope) for scope in scopes)),
        )
        gathered = await asyncio.gather(
            *(
                self._gather(call, meaning, vector, scope, hits)
                for scope, hits in zip(scopes, by_words, strict=True)
            )
        )
        found = Found(intent, meaning, vector, gathered, await pinned)
        considered, weighed = await self._storage.read(
            lambda session: self._weigh(session, call, operation, found)
        )
        degraded = [WORDLESS] if None in by_words else []
        degraded += [MEANINGLESS] if vector is None else []
        return Looked(considered, weighed, " ".join(degraded) or None)

    async def _by_words(self, words: str, scope: Scope) -> list[tuple[int, float]] | None:
        try:
            return await self._storage.read(
                lambda session: self._gathering.by_words(session, words, scope, self._depth)
            )
        except Unsupported:
            return None

    async def _vector(self, meaning: Meaning, intent: Intent) -> Vectors | None:
        try:
            return await meaning.embedding.query(intent.embed_text)
        except (EmbedderUnavailable, Overloaded):
            return None

    def _gather(
        self,
        call: Call,
        meaning: Meaning,
        vector: Vectors | None,
        scope: Scope,
        hits: list[tuple[int, float]] | None,
    ) -> asyncio.Future[Gathered]:
        return self._storage.read(
            lambda session: self._gathering.gather(
                session,
                lexical=hits or [],
                meaning=meaning,
                vector=vector,
                scope=scope,
                depth=self._depth,
                now_us=call.now_us,
            )
        )

    def _weigh(
        self, session: Session, call: Call, operation: AssembleContext, found: Found
    ) -> tuple[list[Considered], int]:
        """The best of what was found in all tiers, and how much that was."""
        rows: dict[int, MemoryRow] = {}
        candidates: dict[int, Candidate] = {}
        for gathered in found.gathered:
            # A memory that moved on meanwhile may have been found in two tiers.
            rows |= gathered.rows
            candidates |= {candidate.num: candidate for candidate in gathered.candidates}
        for row in self._missed(session, found, rows):
            rows[row.num] = row
            similarity = similarity_of(found.meaning, found.vector, row.num)
            candidates[row.num] = candidate_of(row, None, similarity, call.now_us)
        limit = min(RANKED_MAX, max(RANKED_MIN, operation.max_tokens // TOKENS_A_PIECE))
        runs = [run for gathered in found.gathered for run in gathered.runs]
        first = set(found.pinned)
        if operation.task_id is not None:
            first |= {num for num, row in rows.items() if says_task(row, operation.task_id)}
        ranked = rank(found.intent, list(candidates.values()), self._weights, runs)
        best = ranked[0].score if ranked else 0.0
        ranked = [
            item for item in ranked if item.num in first or item.score >= RELEVANT_SHARE * best
        ]
        # What must come first is not lost behind the limit.
        ranked.sort(key=lambda item: item.num not in first)
        ranked = collapse(ranked[:limit], candidates)
        vectors = self._store.vectors.of(session, found.meaning, [item.num for item in ranked])
        considered = [
            Considered(
                row=rows[item.num],
                tier=tier_of(rows[item.num]),
                score=item.score,
                value=value_of(item.score, best, rows[item.num].trust),
                first=item.num in first,
                vector=vectors.get(item.num),
            )
            for item in ranked
        ]
        return considered, len(rows)

    def _missed(
        self, session: Session, found: Found, rows: dict[int, MemoryRow]
    ) -> list[MemoryRow]:
        """Rows of the pinned that no search brought."""
        nums = [(num, None) for num in found.pinned if num not in rows]
        return [row for row, _ in self._store.rows_of(session, nums)]


def narrowed(scope: Scope, conditions: Sequence[Condition]) -> Scope:
    """The part of a scope that fits any of some conditions."""
    sql = " OR ".join(f"({sql})" for sql, _ in conditions)
    params = [param for _, some in conditions for param in some]
    if scope.narrow is None:
        return msgspec.structs.replace(scope, narrow=(f"({sql})", params))
    before, given = scope.narrow
    return msgspec.structs.replace(scope, narrow=(f"{before} AND ({sql})", [*given, *params]))


def value_of(score: float, best: float, trust: float) -> float:
    """What a memory is worth beside the best one."""
    share = max(score, 0.0) / best if best > 0 else 0.0
    return share * (UNTRUSTED_RATE + (1 - UNTRUSTED_RATE) * trust)


def similarity_of(meaning: Meaning, vector: Vectors | None, num: int) -> float | None:
    """How near a memory is to the task; None if that is not known."""
    if vector is None:
        return None
    [similarity] = meaning.index.similarities(vector, np.array([num], dtype=np.int64)).tolist()
    return similarity if similarity == similarity else None
