"""Going through memories: lists, children, groups' members, counts and histories, page by page."""

from __future__ import annotations

import asyncio
from typing import Any

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.memory_store import MemoryStore, no_such_memory
from recollect.orchestrator.memories.rows import (
    COLUMNS,
    PRESENT,
    MemoryRow,
    record_of,
    with_snapshot,
)
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.scope import Scoping, readable_condition
from recollect.orchestrator.services.changing import Find
from recollect.orchestrator.storage.interface import Session, Storage
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.operations import Count, GetChildren, History, HistoryByKey, ListMemories

LIST = f"""
SELECT {COLUMNS} FROM memories WHERE {{condition}} AND num < ? ORDER BY num DESC LIMIT ?
"""
COUNT = "SELECT count(*) FROM memories WHERE {condition}"
CHILDREN = f"""
SELECT {COLUMNS} FROM memories
WHERE parent_id = ? AND {PRESENT} AND (expires_us IS NULL OR expires_us > ?) AND {{readable}}
    {{after}}
ORDER BY {{column}} {{order}}, num {{order}} LIMIT ?
"""
OLD_VERSIONS = """
SELECT snapshot FROM versions WHERE num = ? AND version < ? ORDER BY version DESC LIMIT ?
"""
SORT_COLUMNS = {"created_at": "created_us", "updated_at": "updated_us", "importance": "importance"}
NUM_MAX = (1 << 63) - 1
VERSIONS_AT_HAND_MAX = 10


class ListingService:
    """Reads that give many memories."""

    def __init__(
        self, storage: Storage, store: MemoryStore, scoping: Scoping, validator: Validator
    ) -> None:
        self._storage = storage
        self._store = store
        self._scoping = scoping
        self._validator = validator

    @reads(ListMemories)
    def list_memories(
        self, call: Call, operation: ListMemories
    ) -> asyncio.Future[records.MemoriesListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1)
        scope = self._scoping.scope(
            call,
            call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            filters=operation.filters,
            include_deleted=operation.include_deleted,
            include_archived=operation.include_archived,
        )
        condition, params = scope.condition
        below = position[0] if position else NUM_MAX

        def read(session: Session) -> records.MemoriesListed:
            sql = LIST.format(condition=condition)
            found = [MemoryRow(*row) for row in session.execute(sql, (*params, below, limit + 1))]
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1].num])
            return listed(found, call.now_us, cursor)

        return self._storage.read(read)

    @reads(Count)
    def count(self, call: Call, operation: Count) -> asyncio.Future[records.MemoriesCounted]:
        scope = self._scoping.scope(
            call,
            call.now_us,
            namespace=operation.namespace,
            memory_type=operation.memory_type,
            filters=operation.filters,
            include_deleted=operation.include_deleted,
            include_archived=operation.include_archived,
        )
        condition, params = scope.condition

        def read(session: Session) -> records.MemoriesCounted:
            [(count,)] = session.execute(COUNT.format(condition=condition), params)
            return {"status": "success", "count": count}

        return self._storage.read(read)

    @reads(GetChildren)
    def get_children(
        self, call: Call, operation: GetChildren
    ) -> asyncio.Future[records.MemoriesListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 2)
        column = SORT_COLUMNS[operation.sort_field]
        after, after_params = "", []
        if position:
            sign = "<" if operation.sort_order == "desc" else ">"
            after = f"AND ({column} {sign} ? OR ({column} = ? AND num {sign} ?))"
            after_params = [position[0], position[0], position[1]]
        readable, patterns = readable_condition(call.grants.within(None))
        sql = CHILDREN.format(
            column=column, order=operation.sort_order, after=after, readable=readable
        )

        def read(session: Session) -> records.MemoriesListed:
            self._store.require(call, session, operation.parent_id, "parent memory")
            params = (operation.parent_id, call.now_us, *patterns, *after_params, limit + 1)
            found = [MemoryRow(*row) for row in session.execute(sql, params)]
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                last: list[Any] = [getattr(found[-1], column), found[-1].num]
                cursor = make_cursor(operation, last)
            return listed(found, call.now_us, cursor)

        return self._storage.read(read)

    @reads(History)
    def history(
        self, call: Call, operation: History
    ) -> records.MemoryHistory | asyncio.Future[records.MemoryHistory]:
        def find(session: Session) -> MemoryRow:
            current = self._store.find(call, session, operation.memory_id)
            if current is None:
                raise no_such_memory(operation.memory_id)
            return current

        return self.history_of(call, operation, find)

    def history_of(
        self, call: Call, operation: History | HistoryByKey, find: Find
    ) -> records.MemoryHistory | asyncio.Future[records.MemoryHistory]:
        """A page of the versions of a memory, however it is found."""
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 2)

        def read(session: Session) -> records.MemoryHistory:
            current = find(session)
            if position and position[1] != current.num:
                raise InvalidArgument(
                    "The key holds another memory by now; begin anew without the cursor.",
                    field="cursor",
                )
            versions = [] if position else [current]
            below = position[0] if position else current.version
            snapshots = session.execute(OLD_VERSIONS, (current.num, below, limit + 1))
            versions += [with_snapshot(current, snapshot) for (snapshot,) in snapshots]
            cursor = None
            if len(versions) > limit:
                versions = versions[:limit]
                cursor = make_cursor(operation, [versions[-1].version, current.num])
            return {
                "status": "success",
                "memory_id": current.id,
                "versions": [_version(row, call.now_us) for row in versions],
                "count": len(versions),
                "cursor": cursor,
            }

        # A few versions are there sooner than a thread is.
        if self._storage.inline_reads and limit <= VERSIONS_AT_HAND_MAX:
            return self._storage.read_inline(read)
        return self._storage.read(read)


def listed(found: list[MemoryRow], now_us: int, cursor: str | None) -> records.MemoriesListed:
    """A page of memories."""
    return {
        "status": "success",
        "memories": [record_of(row, now_us) for row in found],
        "count": len(found),
        "cursor": cursor,
    }


def _version(row: MemoryRow, now_us: int) -> records.MemoryVersion:
    return {
        "version": row.version,
        "operation": row.operation,
        "changed_at": to_iso(row.updated_us),
        "changed_by": row.updated_by,
        "memory": record_of(row, now_us),
    }
