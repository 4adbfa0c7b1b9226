"""Finding memories by words and by meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memory_store import MemoryStore
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.rows import SELECT_BY_NUM, MemoryRow, record_of
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.search.vectors import Numbers
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import SearchMemory, SemanticSearch

SELECT_NUMS = "SELECT num FROM memories WHERE {condition}"

Found = list[tuple[MemoryRow, float]]


class SearchService:
    """Ranked reads. Filters always apply before the best are taken."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        lexical: LexicalIndex,
        scoping: Scoping,
        validator: Validator,
        accesses: AccessLog,
    ) -> None:
        self._storage = storage
        self._store = store
        self._lexical = lexical
        self._scoping = scoping
        self._validator = validator
        self._accesses = accesses

    @reads(SearchMemory)
    async def search_memory(self, call: Call, operation: SearchMemory) -> records.MemoriesFound:
        limit = self._validator.page(operation.limit)
        self._validator.text("query", operation.query, "query_chars_max")
        position = read_cursor(operation, operation.cursor, 1)
        offset = int(position[0]) if position else 0
        condition = self._scoping.condition(
            call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            parent_id=operation.parent_id,
            filters=operation.filters,
        )

        def read(session: Session) -> Found:
            if operation.parent_id is not None:
                self._store.require(session, operation.parent_id, call.now_us, "parent memory")
            hits = self._lexical.find(session, operation.query, condition, limit + 1, offset)
            return [(row, score) for num, score in hits if (row := _row(session, num)) is not None]

        found = await self._storage.read(read)
        cursor = None
        if len(found) > limit:
            found = found[:limit]
            cursor = make_cursor(operation, [offset + limit])
        return self._answer(call, found, cursor)

    @reads(SemanticSearch)
    async def semantic_search(self, call: Call, operation: SemanticSearch) -> records.MemoriesFound:
        k = self._validator.page(operation.k)
        self._validator.text("query", operation.query, "query_chars_max")
        narrowed = operation.filters or operation.namespace is not None
        condition, params = self._scoping.condition(
            call.now_us, namespace=operation.namespace, filters=operation.filters
        )
        embedder = self._store.embedder
        if embedder.inline:
            vectors = embedder.embed_now([operation.query])
        else:
            vectors = await embedder.embed([operation.query])

        def read(session: Session) -> Found:
            allowed = None
            if narrowed:
                nums = session.execute(SELECT_NUMS.format(condition=condition), params)
                allowed = np.array([num for (num,) in nums], dtype=np.int64)
            return self._nearest(session, vectors[0], k, allowed, call.now_us)

        return self._answer(call, await self._storage.read(read), None)

    def _nearest(
        self, session: Session, vector: Vectors, k: int, allowed: Numbers | None, now_us: int
    ) -> Found:
        """The k nearest that are alive; the index may still know some that expired since."""
        wanted = k
        while True:
            hits = self._store.index.search(vector, wanted, allowed)
            found = [
                (row, score)
                for num, score in hits
                if (row := _row(session, num)) is not None and row.alive(now_us)
            ]
            if len(found) >= k or len(hits) < wanted:
                return found[:k]
            wanted *= 4

    def _answer(self, call: Call, found: Found, cursor: str | None) -> records.MemoriesFound:
        results: list[Any] = []
        for row, score in found:
            results.append({**record_of(row, call.now_us), "score": score})
            self._accesses.note(row.id, call.now_us)
        return {"status": "success", "results": results, "count": len(results), "cursor": cursor}


def _row(session: Session, num: int) -> MemoryRow | None:
    found = session.execute(SELECT_BY_NUM, (num,))
    return MemoryRow(*found[0]) if found else None
