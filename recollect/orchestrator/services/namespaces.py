"""Going through namespaces: which there are, and the memories of one with all below it."""

from __future__ import annotations

import asyncio

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.memories.rows import COLUMNS, PRESENT, MemoryRow
from recollect.orchestrator.namespaces import NEXT, readable_spans
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.services.listing import listed
from recollect.orchestrator.storage.interface import Row, Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import ListNamespaces, SearchNamespace

LIVING = f"{PRESENT} AND (expires_us IS NULL OR expires_us > ?)"
MEMORIES = f"""
SELECT {COLUMNS} FROM memories
WHERE (namespace, num) > (?, ?) AND namespace < ? AND {LIVING} {{of_type}}
ORDER BY namespace, num LIMIT ?
"""
OF_TYPE = "AND memory_type = ?"
# From one namespace the index leads straight to the next, however many memories are between. What
# is counted is in that index, so that no memory is read.
NAMESPACES = f"""
WITH RECURSIVE found (namespace) AS (
    SELECT (
        SELECT namespace FROM memories WHERE namespace >= ? AND namespace < ?
        ORDER BY namespace LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT m.namespace FROM memories m WHERE m.namespace > found.namespace AND m.namespace < ?
        ORDER BY m.namespace LIMIT 1
    )
    FROM found WHERE found.namespace IS NOT NULL
)
SELECT found.namespace,
    (SELECT count(*) FROM memories WHERE memories.namespace = found.namespace AND {LIVING})
FROM found WHERE found.namespace IS NOT NULL LIMIT ?
"""


class NamespaceService:
    """Reads by namespace, in the order of namespaces."""

    def __init__(self, storage: Storage, validator: Validator) -> None:
        self._storage = storage
        self._validator = validator

    @reads(SearchNamespace)
    def search_namespace(
        self, call: Call, operation: SearchNamespace
    ) -> asyncio.Future[records.MemoriesListed]:
        limit = self._validator.page(operation.limit)
        prefix = self._validator.prefix(operation.prefix)
        behind = tuple(read_cursor(operation, operation.cursor, 2, texts=1) or ("", 0))
        spans = readable_spans(call, prefix)
        of_type = () if operation.memory_type is None else (operation.memory_type,)
        sql = MEMORIES.format(of_type=OF_TYPE if of_type else "")

        def read(session: Session) -> records.MemoriesListed:
            rows: list[Row] = []
            for low, high in spans:
                if len(rows) <= limit:
                    # Numbers begin with 1, so that nothing of the span is left out.
                    start = max(behind, (low, 0))
                    params = (*start, high, call.now_us, *of_type, limit + 1 - len(rows))
                    rows += session.execute(sql, params)
            found = [MemoryRow(*row) for row in rows[:limit]]
            cursor = None
            if len(rows) > limit:
                cursor = make_cursor(operation, [found[-1].namespace, found[-1].num])
            return listed(found, call.now_us, cursor)

        return self._storage.read(read)

    @reads(ListNamespaces)
    def list_namespaces(
        self, call: Call, operation: ListNamespaces
    ) -> asyncio.Future[records.NamespacesListed]:
        limit = self._validator.page(operation.limit)
        prefix = operation.prefix
        if prefix is not None:
            self._validator.prefix(prefix)
        last = read_cursor(operation, operation.cursor, 1, texts=1)
        behind = last[0] + NEXT if last else ""
        spans = readable_spans(call, prefix)

        def read(session: Session) -> records.NamespacesListed:
            found: list[Row] = []
            for low, high in spans:
                if len(found) <= limit and behind < high:
                    params = (max(behind, low), high, high, call.now_us, limit + 1 - len(found))
                    found += session.execute(NAMESPACES, params)
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1][0]])
            # Those that hold nothing but the deleted count toward the page: what a page costs is
            # bounded, whatever lies between.
            namespaces: list[records.NamespaceFound] = [
                {"namespace": name, "memories": count} for name, count in found if count
            ]
            return {
                "status": "success",
                "namespaces": namespaces,
                "count": len(namespaces),
                "cursor": cursor,
            }

        return self._storage.read(read)
