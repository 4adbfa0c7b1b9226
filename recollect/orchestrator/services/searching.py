"""Finding memories by words and by meaning."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.embedding.meaning import Meaning
from recollect.orchestrator.embedding.questions import Questions
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import CachedMemory, MemoryRow
from recollect.orchestrator.memories.rows_at_hand import RowsAtHand
from recollect.orchestrator.memories.shown import shown
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.search.past import PastSearch
from recollect.orchestrator.search.scope import Scope, Scoping
from recollect.orchestrator.search.scopes import Nearest
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import SearchMemory, SemanticSearch

Found = Sequence[tuple[MemoryRow | CachedMemory, float]]

INLINE_S_MAX = 0.001
"""What takes longer on the processor is done in a thread; to wake one, and to win the interpreter
back from it, takes about as long as this."""
INLINE_WANTED_MAX = 64
"""Never are more rows brought on the event loop, however quick the last searches were."""
EXPIRED_SPARE = 4
FLOAT_BYTES = 4


class SearchService:
    """Ranked reads. Filters always apply before the best are taken."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        lexical: LexicalIndex,
        nearest: Nearest,
        past: PastSearch,
        scoping: Scoping,
        validator: Validator,
        accesses: AccessLog,
        questions: Questions,
    ) -> None:
        self._storage = storage
        self._store = store
        self._lexical = lexical
        self._nearest = nearest
        self._past = past
        self._scoping = scoping
        self._validator = validator
        self._accesses = accesses
        self._questions = questions
        self._at_hand = RowsAtHand(store, accesses)
        # About how much of the processor finding the nearest takes, of all and within a scope that
        # is at hand, as lately seen by whichever thread. Not how long it takes: on a busy machine
        # that says more of the others, and a thread would wait as long and for the interpreter too.
        self._index_s = 0.0
        self._scoped_s = 0.0

    @reads(SearchMemory)
    async def search_memory(self, call: Call, operation: SearchMemory) -> records.MemoriesFound:
        limit = self._validator.page(operation.limit)
        self._validator.asked("query", operation.query, "query_chars_max")
        check_threshold(operation.threshold)
        shown(operation.fields)
        offset = offset_of(operation)
        moment_us = self._past.moment_us(operation.as_of, call.now_us)
        scope = self._scoping.scope(
            call,
            moment_us or call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            parent_id=operation.parent_id,
            filters=operation.filters,
            collections=operation.collections,
        )

        def read(session: Session) -> Found:
            if operation.parent_id is not None and moment_us is None:
                self._store.require(call, session, operation.parent_id, "parent memory")
            if moment_us is not None:
                return self._past.by_words(
                    session, operation.query, scope, moment_us, offset + limit + 1
                )[offset:]
            home = self._nearest.home(session, scope)
            hits = self._lexical.find(
                session, operation.query, scope.condition, limit + 1, offset, home
            )
            return self._store.rows_of(session, hits)

        found = await self._storage.read(read)
        return self._answer(call, operation, found, limit, offset, "lexical")

    @reads(SemanticSearch)
    def semantic_search(
        self, call: Call, operation: SemanticSearch
    ) -> records.MemoriesFound | Awaitable[records.MemoriesFound]:
        k = self._validator.page(operation.k)
        self._validator.asked("query", operation.query, "query_chars_max")
        check_threshold(operation.threshold)
        shown(operation.fields)
        offset = offset_of(operation)
        moment_us = self._past.moment_us(operation.as_of, call.now_us)
        scope = self._scoping.scope(
            call,
            moment_us or call.now_us,
            namespace=operation.namespace,
            filters=operation.filters,
            collections=operation.collections,
        )
        wanted = offset + k + 1
        meaning = self._store.meanings.current
        vector = ready_vector(meaning, operation)
        if moment_us is not None:
            return self._nearest_then(call, operation, meaning, vector, scope, moment_us, wanted)
        if vector is None:
            return self._nearest_later(call, operation, meaning, None, scope, wanted)
        if self._is_quick(scope, wanted):
            # Quicker than a thread could be woken to do it.
            ready = vector
            near = self._storage.read_inline(
                lambda session: self._near_at_hand(
                    session, meaning, ready, scope, wanted, call.now_us
                )
            )
            if near is not None:
                return self._answer(call, operation, near[offset:], k, offset, "semantic")
        return self._nearest_later(call, operation, meaning, vector, scope, wanted)

    def _is_quick(self, scope: Scope, wanted: int) -> bool:
        """Whether the event loop may find the nearest itself."""
        if not self._storage.inline_reads or wanted > INLINE_WANTED_MAX:
            return False
        if scope.narrow is None:
            return self._index_s <= INLINE_S_MAX
        return self._scoped_s <= INLINE_S_MAX and self._nearest.at_hand(
            scope, self._storage.committed_seq
        )

    async def _nearest_later(
        self,
        call: Call,
        operation: SemanticSearch,
        meaning: Meaning,
        vector: Vectors | None,
        scope: Scope,
        wanted: int,
    ) -> records.MemoriesFound:
        asked = vector
        if asked is None:
            asked = await self._questions.vector(meaning, operation.query, call.deadline_us)
        offset = wanted - operation.k - 1
        found = await self._storage.read(
            lambda session: self._near_rows(
                session, meaning, asked, scope, offset, wanted, call.now_us
            ),
            asks_once=scope.narrow is None and meaning.index.brings_rows,
        )
        return self._answer(call, operation, found, operation.k, offset, "semantic")

    async def _nearest_then(
        self,
        call: Call,
        operation: SemanticSearch,
        meaning: Meaning,
        vector: Vectors | None,
        scope: Scope,
        moment_us: int,
        wanted: int,
    ) -> records.MemoriesFound:
        asked = vector
        if asked is None:
            asked = await self._questions.vector(meaning, operation.query, call.deadline_us)
        found, unread = await self._past.by_meaning(
            self._storage, meaning, asked, scope, moment_us, wanted
        )
        offset = wanted - operation.k - 1
        answer = self._answer(call, operation, found[offset:], operation.k, offset, "semantic")
        if unread:
            answer["degraded"] = (
                f"Left out {unread:,} memories that have changed since then: {meaning.model} gave "
                "no vectors of what they said."
            )
        return answer

    def _near_at_hand(
        self,
        session: Session,
        meaning: Meaning,
        vector: Vectors,
        scope: Scope,
        wanted: int,
        now_us: int,
    ) -> Found | None:
        """The nearest of a scope; None if some that were found are no longer there."""
        if scope.narrow is None:
            hits = self._search(session, meaning, vector, wanted)
            return self._living(session, hits, now_us)
        ready = self._nearest.ready(scope, self._storage.committed_seq)
        if ready is not None:
            began_s = time.thread_time()
            hits = meaning.index.seen_by(session).search(vector, wanted, ready.nums)
            self._scoped_s += (time.thread_time() - began_s - self._scoped_s) / 8
            found = self._living(session, hits, now_us, ready.listed_seq)
            if found is not None:
                return found
        hits = self._search_within(session, meaning, vector, scope, wanted)
        return self._living(session, hits, now_us)

    def _living(
        self,
        session: Session,
        hits: list[tuple[int, float]],
        now_us: int,
        unchanged_since: int | None = None,
    ) -> Found | None:
        """What was found, if all of it lives and, if that is asked, is as it was at a change."""
        known = self._at_hand.of(session, [num for num, _ in hits])
        found: list[tuple[CachedMemory, float]] = []
        for num, score in hits:
            memory = known.get(num)
            if memory is None:
                return None
            row = memory.row
            if not row.found(now_us) or (unchanged_since is not None and row.seq > unchanged_since):
                return None
            found.append((memory, score))
        return found

    def _search(
        self, session: Session, meaning: Meaning, vector: Vectors, wanted: int
    ) -> list[tuple[int, float]]:
        began_s = time.thread_time()
        hits = meaning.index.seen_by(session).search(vector, wanted)
        if wanted <= INLINE_WANTED_MAX + EXPIRED_SPARE:
            self._index_s += (time.thread_time() - began_s - self._index_s) / 8
        return hits

    def _search_within(
        self, session: Session, meaning: Meaning, vector: Vectors, scope: Scope, wanted: int
    ) -> list[tuple[int, float]]:
        counts = (
            wanted <= INLINE_WANTED_MAX
            and scope.narrow is not None
            and self._nearest.at_hand(scope, self._storage.committed_seq)
        )
        began_s = time.thread_time()
        hits = self._nearest.find(session, meaning.index, vector, wanted, scope)
        if counts:
            self._scoped_s += (time.thread_time() - began_s - self._scoped_s) / 8
        return hits

    def _near_rows(
        self,
        session: Session,
        meaning: Meaning,
        vector: Vectors,
        scope: Scope,
        offset: int,
        wanted: int,
        now_us: int,
    ) -> Found:
        """The nearest from an offset on: of those before it no rows are brought."""
        if scope.narrow is None:
            if meaning.index.brings_rows:
                held = meaning.index.seen_by(session)
                brought = held.search_rows(vector, wanted, scope.alive)
                if brought is not None:
                    return [(MemoryRow(*row), score) for row, score in brought[offset:]]
            if not offset:
                # The index holds the living, but for what expired and what only just ceased to be.
                more = wanted + EXPIRED_SPARE
                hits = self._search(session, meaning, vector, more)
                found: Found = [
                    hit for hit in self._store.rows_of(session, hits) if hit[0].found(now_us)
                ]
                if len(found) >= wanted or len(hits) < more:
                    return found[:wanted]
        hits = self._search_within(session, meaning, vector, scope, wanted)
        return self._store.rows_of(session, hits[offset:])

    def _answer(
        self,
        call: Call,
        operation: SearchMemory | SemanticSearch,
        found: Found,
        limit: int,
        offset: int,
        part: str,
    ) -> records.MemoriesFound:
        if operation.threshold is not None:
            threshold = check_threshold(operation.threshold)
            found = [(row, score) for row, score in found if score >= threshold]
        more = len(found) > limit
        now_us, showing, note = call.now_us, shown(operation.fields), self._accesses.note
        results: list[Any] = []
        for memory, score in found[:limit]:
            if isinstance(memory, CachedMemory):
                result = showing.of_cached(memory, now_us)
            else:
                result = showing.of_row(memory, now_us)
            result["score"] = score
            if operation.explain:
                result["explanation"] = {part: score}
            results.append(result)
            note(result["id"], now_us)
        return {
            "status": "success",
            "results": results,
            "count": len(results),
            "cursor": make_cursor(operation, [offset + limit]) if more else None,
        }


def ready_vector(meaning: Meaning, operation: SemanticSearch) -> Vectors | None:
    """The vector of a query if it need not be waited for."""
    embedding = meaning.embedding
    if operation.vector is None:
        return embedding.at_once(operation.query)
    if isinstance(operation.vector, bytes):
        if len(operation.vector) % FLOAT_BYTES:
            raise InvalidArgument(
                f"vector has {len(operation.vector)} bytes, which are no 32-bit floats.",
                field="vector",
            )
        vector: Vectors = np.frombuffer(operation.vector, dtype="<f4")
    else:
        vector = np.array(operation.vector, dtype=np.float32)
    if len(vector) != embedding.dimensions:
        raise InvalidArgument(
            f"vector has {len(vector)} numbers; vectors of {meaning.model} have "
            f"{embedding.dimensions}. Vectors of different models are not compared.",
            field="vector",
        )
    norm = math.sqrt(float(vector.dot(vector)))
    if not math.isfinite(norm):
        raise InvalidArgument("vector has a number that is not finite.", field="vector")
    return vector / norm if norm else vector


def offset_of(operation: Any) -> int:
    """Where a page begins."""
    position = read_cursor(operation, operation.cursor, 1)
    offset = int(position[0]) if position else 0
    if not 0 <= offset <= OFFSET_MAX:
        raise InvalidArgument(
            f"Pages end after {OFFSET_MAX:,} results; narrow the search by filters instead.",
            field="cursor",
        )
    return offset


OFFSET_MAX = 10_000


def check_threshold(threshold: float | None) -> float:
    """The least score that counts."""
    if threshold is None:
        return -math.inf
    if not math.isfinite(threshold):
        raise InvalidArgument("threshold must be a finite number.", field="threshold")
    return threshold
