"""Recall: words and meaning together, weighed with all that is known of a memory."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.questions import Questions, found_by_words
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow, record_of
from recollect.orchestrator.memories.shown import shown
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.candidates import Gathered, Gathering, candidate_of
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.search.neighbours import Neighbours
from recollect.orchestrator.search.past import PastSearch
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
from recollect.orchestrator.services.searching import INLINE_S_MAX, check_threshold
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
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
        depth: int,
        past: PastSearch,
        authors: Authors,
        scoping: Scoping,
        weights: Weights,
        validator: Validator,
        accesses: AccessLog,
        questions: Questions,
    ) -> None:
        self._storage = storage
        self._store = store
        self._gathering = gathering
        self._depth = depth
        self._past = past
        self._authors = authors
        self._scoping = scoping
        self._weights = weights
        self._validator = validator
        self._accesses = accesses
        self._questions = questions
        self._neighbours = Neighbours(store)
        # About how much of the processor it takes to understand a question, as lately seen by
        # whichever thread.
        self._intent_s = 0.0

    @reads(Recall)
    async def recall(self, call: Call, operation: Recall) -> records.MemoriesFound:
        return await self.within(call, operation)

    async def within(
        self, call: Call, operation: Recall, only: Condition | None = None
    ) -> records.MemoriesFound:
        """The answer to a question, from what fits a condition over the columns of `memories`."""
        k = self._validator.page(operation.k)
        self._validator.asked("query", operation.query, "query_chars_max")
        check_threshold(operation.threshold)
        shown(operation.fields)
        offset, depth = self._place(operation, k)
        moment_us = self._past.moment_us(operation.as_of, call.now_us)
        then = self._scoping.scope(
            call,
            moment_us or call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            filters=operation.filters,
            collections=operation.collections,
            only=only,
        )
        scope = then
        if moment_us is not None:
            moment = moment_us
            scope = await self._storage.read(
                lambda session: self._past.settled(session, then, moment)
            )
        intent = await self._intent(operation.query, scope, moment_us or call.now_us)
        meaning = self._store.meanings.current
        words = intent.search_text
        lexical, lacking = None, None
        question = meaning.embedding.at_once(intent.embed_text)
        if question is None:
            lexical, (question, lacking) = await asyncio.gather(
                self._by_words(words, scope, depth),
                self._questions.heard(meaning, intent.embed_text, call.deadline_us),
            )
        past: list[tuple[MemoryRow, float | None, float | None]] = []
        if moment_us is not None:
            past = await self._past.candidates(
                self._storage, meaning, words, question, then, moment_us
            )

        def read(session: Session) -> Answer:
            hits = lexical
            if hits is None:
                # There was nothing to wait for, which this could have been done beside.
                hits = self._gathering.by_words(session, words, scope, depth)
            gathered = self._gathering.gather(
                session,
                lexical=hits,
                meaning=meaning,
                vector=question,
                scope=scope,
                depth=depth,
                now_us=call.now_us,
            )
            for row, by_words, similarity in past:
                gathered.rows[row.num] = row
                gathered.candidates.append(candidate_of(row, by_words, similarity, call.now_us))
            return self._page(session, operation, intent, meaning, gathered, scope, offset)

        answer = await self._storage.read(read)
        return self._shown(call, operation, answer, [offset + k, depth], found_by_words(lacking))

    def _place(self, operation: Recall, k: int) -> tuple[int, int]:
        """Where the page begins, and how deep both lists are read: the same for all pages of a
        walk, so that they are pages of one ranking."""
        position = read_cursor(operation, operation.cursor, 2)
        if position is None:
            return 0, max(self._depth, k)
        offset, depth = int(position[0]), int(position[1])
        deepest = max(self._depth, self._validator.limits.page_items_max)
        if not (offset >= 0 and self._depth <= depth <= deepest):
            raise InvalidArgument("The cursor is damaged; begin anew without it.", field="cursor")
        return offset, depth

    async def _intent(self, query: str, scope: Scope, now_us: int) -> Intent:
        """What a question asks for, knowing who has written in its scope."""

        def read(session: Session) -> Intent:
            began_s = time.thread_time()
            intent = read_query(query, self._authors.within(session, scope.namespace), now_us)
            self._intent_s += (time.thread_time() - began_s - self._intent_s) / 8
            return intent

        if (
            self._storage.inline_reads
            and self._intent_s <= INLINE_S_MAX
            and len(query) <= INLINE_QUERY_CHARS_MAX
            and self._authors.quick(scope.namespace, INLINE_S_MAX)
        ):
            # Quicker than a thread could be woken to do it.
            return self._storage.read_inline(read)
        return await self._storage.read(read)

    async def _by_words(self, words: str, scope: Scope, depth: int) -> Hits:
        return await self._storage.read(
            lambda session: self._gathering.by_words(session, words, scope, depth)
        )

    def _page(
        self,
        session: Session,
        operation: Recall,
        intent: Intent,
        meaning: Meaning,
        gathered: Gathered,
        scope: Scope,
        offset: int,
    ) -> Answer:
        # Nothing here may depend on the page, or pages would not fit together.
        k = operation.k
        candidates = {candidate.num: candidate for candidate in gathered.candidates}
        ranked = rank(intent, gathered.candidates, self._weights, gathered.runs)
        if operation.collapse:
            ranked = collapse(ranked, candidates)
        if operation.diversity > 0:
            nums = [item.num for item in ranked[:DIVERSE_MAX]]
            vectors = self._store.vectors.of(session, meaning, nums)
            ranked = [
                *diversify(ranked[:DIVERSE_MAX], vectors, 1 - operation.diversity),
                *ranked[DIVERSE_MAX:],
            ]
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
        self,
        call: Call,
        operation: Recall,
        answer: Answer,
        end: list[int],
        degraded: str | None,
    ) -> records.MemoriesFound:
        showing = shown(operation.fields)
        results: list[Any] = []
        for item in answer.ranked:
            row = answer.rows[item.num]
            result = showing.of_row(row, call.now_us)
            result["score"] = item.score
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
            "cursor": make_cursor(operation, end) if answer.more else None,
        }
        if degraded is not None:
            found["degraded"] = degraded
        return found


INLINE_QUERY_CHARS_MAX = 1_000
"""A longer question is understood in a thread, however quick it was with the last ones."""
DIVERSE_MAX = 200
"""Variety is brought into so many of the best; what comes after them stays in its order."""
