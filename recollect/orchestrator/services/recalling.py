"""Recall: words and meaning together, weighed with all that is known of a memory."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec

from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.paging import make_cursor
from recollect.orchestrator.rows import MemoryRow, record_of
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathered, Gathering, candidate_of
from recollect.orchestrator.search.neighbours import Neighbours
from recollect.orchestrator.search.past import PastSearch, unchanged
from recollect.orchestrator.search.ranking import (
    Intent,
    Ranked,
    Weights,
    collapse,
    diversify,
    rank,
    read_query,
)
from recollect.orchestrator.search.scope import Scope, Scoping
from recollect.orchestrator.services.searching import check_threshold, offset_of
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import EmbedderUnavailable, Overloaded, Unsupported
from recollect.protocol.operations import Recall

Hits = list[tuple[int, float]]


class Answer(msgspec.Struct, frozen=True):
    """One page of the ranking, with what is shown of it."""

    ranked: list[Ranked]
    rows: dict[int, MemoryRow]
    neighbours: dict[int, list[MemoryRow]]
    more: bool


class RecallService:
    """Answers questions from memory."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        gathering: Gathering,
        past: PastSearch,
        authors: Authors,
        scoping: Scoping,
        weights: Weights,
        validator: Validator,
        accesses: AccessLog,
    ) -> None:
        self._storage = storage
        self._store = store
        self._gathering = gathering
        self._past = past
        self._authors = authors
        self._scoping = scoping
        self._weights = weights
        self._validator = validator
        self._accesses = accesses
        self._neighbours = Neighbours(store)

    @reads(Recall)
    async def recall(self, call: Call, operation: Recall) -> records.MemoriesFound:
        k = self._validator.page(operation.k)
        self._validator.text("query", operation.query, "query_chars_max")
        check_threshold(operation.threshold)
        offset = offset_of(operation)
        moment_us = self._past.moment_us(operation.as_of, call.now_us)
        then = self._scoping.scope(
            moment_us or call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            filters=operation.filters,
        )
        scope = then if moment_us is None else unchanged(then, moment_us)
        intent = read_query(
            operation.query,
            await self._known_authors(operation.namespace),
            moment_us or call.now_us,
        )
        meaning = self._store.meanings.current
        wanted = offset + k + 1
        words = intent.search_text
        lexical, vector = await asyncio.gather(
            self._by_words(words, scope, wanted), self._vector(meaning, intent)
        )
        past: list[tuple[MemoryRow, float | None, float | None]] = []
        if moment_us is not None and not isinstance(lexical, Degraded):
            question = None if isinstance(vector, Degraded) else vector
            past = await self._past.candidates(
                self._storage, meaning, words, question, then, moment_us
            )
        degraded = [str(part) for part in (lexical, vector) if isinstance(part, Degraded)]

        def read(session: Session) -> Answer:
            gathered = self._gathering.gather(
                session,
                lexical=[] if isinstance(lexical, Degraded) else lexical,
                meaning=meaning,
                vector=None if isinstance(vector, Degraded) else vector,
                scope=scope,
                wanted=wanted,
                now_us=call.now_us,
            )
            for row, by_words, similarity in past:
                gathered.rows[row.num] = row
                gathered.candidates.append(candidate_of(row, by_words, similarity, call.now_us))
            return self._page(session, operation, intent, meaning, gathered, scope, offset, k)

        return self._shown(call, operation, await self._storage.read(read), offset + k, degraded)

    async def _known_authors(self, namespace: str | None) -> list[str]:
        find = partial(_within, self._authors, namespace)
        if self._storage.inline_reads:
            return self._storage.read_inline(find)
        return await self._storage.read(find)

    async def _by_words(self, words: str, scope: Scope, wanted: int) -> Hits | Degraded:
        try:
            return await self._storage.read(
                lambda session: self._gathering.by_words(session, words, scope, wanted)
            )
        except Unsupported as error:
            return Degraded(error.message)

    async def _vector(self, meaning: Meaning, intent: Intent) -> Vectors | Degraded:
        try:
            return await meaning.embedding.query(intent.embed_text)
        except (EmbedderUnavailable, Overloaded) as error:
            return Degraded(f"Found by words alone: {error.message}")

    def _page(
        self,
        session: Session,
        operation: Recall,
        intent: Intent,
        meaning: Meaning,
        gathered: Gathered,
        scope: Scope,
        offset: int,
        k: int,
    ) -> Answer:
        candidates = {candidate.num: candidate for candidate in gathered.candidates}
        # As many more as may be left out again as saying the same.
        most = offset + k + COLLAPSED_MAX
        ranked = rank(intent, gathered.candidates, self._weights, gathered.runs, most)
        if operation.collapse:
            ranked = collapse(ranked, candidates, offset + k)
        if operation.diversity > 0:
            vectors = self._store.vectors_of(
                session, meaning, [item.num for item in ranked[: offset + k + DIVERSE_AMONG]]
            )
            ranked = diversify(ranked, vectors, 1 - operation.diversity, offset + k + 1)
        threshold = check_threshold(operation.threshold)
        ranked = [item for item in ranked if item.score >= threshold]
        page = ranked[offset : offset + k]
        around = {}
        if operation.neighbours:
            around = {
                item.num: self._neighbours.of(
                    session, gathered.rows[item.num], operation.neighbours, scope
                )
                for item in page
            }
        return Answer(page, gathered.rows, around, len(ranked) > offset + k)

    def _shown(
        self, call: Call, operation: Recall, answer: Answer, end: int, degraded: list[str]
    ) -> records.MemoriesFound:
        results: list[Any] = []
        for item in answer.ranked:
            row = answer.rows[item.num]
            result: dict[str, Any] = {**record_of(row, call.now_us), "score": item.score}
            if operation.explain:
                result["explanation"] = item.parts
            if item.duplicates:
                result["also"] = [answer.rows[num].id for num in item.duplicates]
            if operation.neighbours:
                result["neighbours"] = [
                    record_of(near, call.now_us) for near in answer.neighbours[item.num]
                ]
            results.append(result)
            self._accesses.note(row.id, call.now_us)
        found: records.MemoriesFound = {
            "status": "success",
            "results": results,
            "count": len(results),
            "cursor": make_cursor(operation, [end]) if answer.more else None,
        }
        if degraded:
            found["degraded"] = " ".join(degraded)
        return found


COLLAPSED_MAX = 100
DIVERSE_AMONG = 50
"""How far below a page variety is looked for."""


class Degraded(str):
    """Why a part of the search could not be done."""


def _within(authors: Authors, namespace: str | None, session: Session) -> list[str]:
    return authors.within(session, namespace)
