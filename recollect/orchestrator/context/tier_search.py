"""Looks through every tier for what may help, and weighs all of it on one scale.

Each tier is searched on its own, by words and by meaning, so that a large one does not push a small
one out; what they give is ranked together, so that a score means the same wherever it comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from recollect.orchestrator.calls import Call
from recollect.orchestrator.context.belonging import pinned_nums, says_task
from recollect.orchestrator.context.tiers import condition_of, tier_of
from recollect.orchestrator.context.weighing import Considered, repeating, value_of, weigh
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.questions import Questions, found_by_words
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathered, Gathering, candidate_of
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.ranking import Candidate, Intent, Weights, read_query
from recollect.orchestrator.search.scope import Scope, Scoping
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.protocol.operations import AssembleContext
from recollect.protocol.operations.context import ContextTier

CROWDED_SHARE = 0.5
DEEPER = 4
"""If so many of what a tier gives only repeat the task, it is searched so many times deeper."""

Hits = list[tuple[int, float]]


class Looked(msgspec.Struct, frozen=True):
    """The best of what was found, by falling score, and how much was weighed."""

    considered: list[Considered]
    weighed: int
    degraded: str | None


class Asked(msgspec.Struct, frozen=True):
    """A task as every tier is searched for it."""

    call: Call
    task: str
    intent: Intent
    meaning: Meaning
    vector: Vectors | None


class Found(msgspec.Struct, frozen=True):
    """What one tier has."""

    gathered: Gathered
    repeats: set[int]
    """Of that, what says the task again."""


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
        questions: Questions,
    ) -> None:
        self._storage = storage
        self._store = store
        self._gathering = gathering
        self._depth = depth
        self._authors = authors
        self._scoping = scoping
        self._weights = weights
        self._questions = questions

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
        (vector, lacking), by_words = await asyncio.gather(
            self._questions.heard(meaning, intent.embed_text, call.deadline_us),
            self._by_words(words, scopes),
        )
        asked = Asked(call, operation.task_description, intent, meaning, vector)
        found = await asyncio.gather(
            *(
                self._storage.read(partial(self._found, asked, scope, hits))
                for scope, hits in zip(scopes, by_words, strict=True)
            )
        )
        first = await pinned
        considered, weighed = await self._storage.read(
            lambda session: self._weighed(session, asked, operation, found, first)
        )
        return Looked(considered, weighed, found_by_words(lacking))

    async def _by_words(self, words: str, scopes: Sequence[Scope]) -> list[Hits]:
        return await self._storage.read(
            lambda session: self._gathering.by_words_in_each(session, words, scopes, self._depth)
        )

    def _found(self, asked: Asked, scope: Scope, hits: Hits, session: Session) -> Found:
        """What a tier has for a task."""
        found = self._gather(session, asked, scope, hits, self._depth)
        if len(found.repeats) <= CROWDED_SHARE * self._depth:
            return found
        # The task was done so often that there was hardly a place for anything else.
        depth = DEEPER * self._depth
        hits = self._gathering.by_words(session, asked.intent.search_text, scope, depth)
        return self._gather(session, asked, scope, hits, depth)

    def _gather(
        self, session: Session, asked: Asked, scope: Scope, hits: Hits, depth: int
    ) -> Found:
        gathered = self._gathering.gather(
            session,
            lexical=hits,
            meaning=asked.meaning,
            vector=asked.vector,
            scope=scope,
            depth=depth,
            now_us=asked.call.now_us,
        )
        return Found(gathered, repeating(asked.task, gathered.candidates))

    def _weighed(
        self,
        session: Session,
        asked: Asked,
        operation: AssembleContext,
        found: Sequence[Found],
        pinned: Sequence[int],
    ) -> tuple[list[Considered], int]:
        """The best of what was found in all tiers, and how much that was."""
        now_us = asked.call.now_us
        rows: dict[int, MemoryRow] = {}
        candidates: dict[int, Candidate] = {}
        for one in found:
            # A memory that moved on meanwhile may have been found in two tiers.
            rows |= one.gathered.rows
            candidates |= {candidate.num: candidate for candidate in one.gathered.candidates}
        # Rows of the pinned that no search brought.
        missed = [(num, None) for num in pinned if num not in rows]
        for row, _ in self._store.rows_of(session, missed):
            rows[row.num] = row
            similarity = similarity_of(session, asked.meaning, asked.vector, row.num)
            candidates[row.num] = candidate_of(row, None, similarity, now_us)
        for num, row in rows.items():
            # What was deleted since it was found is not given.
            if not (row.alive(now_us) and row.present):
                del candidates[num]
        first = set(pinned)
        if operation.task_id is not None:
            first |= {num for num, row in rows.items() if says_task(row, operation.task_id)}
        weighed = weigh(
            asked.intent,
            candidates,
            self._weights,
            [run for one in found for run in one.gathered.runs],
            first=first,
            repeats={num for one in found for num in one.repeats},
            tokens_max=operation.max_tokens,
        )
        nums = [item.num for item in weighed.ranked]
        vectors = self._store.vectors.of(session, asked.meaning, nums)
        considered = [
            Considered(
                row=rows[item.num],
                tier=tier_of(rows[item.num]),
                score=item.score,
                value=value_of(weighed.shares[item.num], rows[item.num].trust),
                first=item.num in first,
                vector=vectors.get(item.num),
            )
            for item in weighed.ranked
        ]
        return considered, len(candidates)


def narrowed(scope: Scope, conditions: Sequence[Condition]) -> Scope:
    """The part of a scope that fits any of some conditions."""
    sql = " OR ".join(f"({sql})" for sql, _ in conditions)
    params = [param for _, some in conditions for param in some]
    if scope.narrow is None:
        return msgspec.structs.replace(scope, narrow=(f"({sql})", params))
    before, given = scope.narrow
    return msgspec.structs.replace(scope, narrow=(f"{before} AND ({sql})", [*given, *params]))


def similarity_of(
    session: Session, meaning: Meaning, vector: Vectors | None, num: int
) -> float | None:
    """How near a memory is to the task; None if that is not known."""
    if vector is None:
        return None
    held = meaning.index.seen_by(session)
    [similarity] = held.similarities(vector, np.array([num], dtype=np.int64)).tolist()
    return similarity if similarity == similarity else None
