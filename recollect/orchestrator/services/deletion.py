"""Taking memories away: softly with the whole tree or without, or for good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import msgspec

from recollect.orchestrator.calls import Call, writes
from recollect.orchestrator.consolidation.lineage import descendants
from recollect.orchestrator.memories.memory_store import (
    EXPIRE,
    MemoryStore,
    as_deleted,
    check_version,
    no_such_memory,
)
from recollect.orchestrator.memories.rows import COLUMNS, JOINED_COLUMNS, MemoryRow
from recollect.orchestrator.services.changing import Find
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.operations import DeleteMemory, Purge

# Each memory has one parent and cycles are refused, so the walk meets each memory once; UNION makes
# it end even if it did not.
TREE_BELOW = f"""
WITH RECURSIVE tree (num, id) AS (
    SELECT num, id FROM memories WHERE id = ?
    UNION
    SELECT m.num, m.id FROM memories m JOIN tree ON m.parent_id = tree.id
    WHERE {{alive}}
)
SELECT {JOINED_COLUMNS} FROM tree JOIN memories m ON m.num = tree.num LIMIT ?
"""
LIVING_TREE = TREE_BELOW.format(alive="m.deleted_us IS NULL")
WHOLE_TREE = TREE_BELOW.format(alive="TRUE")
CHILDREN = f"""
SELECT {COLUMNS} FROM memories
WHERE parent_id = ? AND (created_us, num) > (?, ?) AND {{alive}}
ORDER BY created_us, num LIMIT ?
"""
LIVING_CHILDREN = CHILDREN.format(alive="deleted_us IS NULL")
ALL_CHILDREN = CHILDREN.format(alive="TRUE")
CHILDREN_AT_ONCE = 500
"""That are read at a time: what stays is not bounded as a tree is that goes."""


class DeletionService:
    """Deletes and purges; each is one transaction, however large the tree."""

    def __init__(
        self,
        store: MemoryStore,
        validator: Validator,
        wiped: Callable[[Call], Awaitable[bool]],
    ) -> None:
        """`wiped` waits, while a call can, until nothing is left of what was purged."""
        self._store = store
        self._validator = validator
        self._wiped = wiped

    @writes(DeleteMemory)
    def delete_memory(
        self, call: Call, operation: DeleteMemory
    ) -> Callable[[WriteTransaction], records.MemoryDeleted]:
        def find(session: Session) -> MemoryRow:
            return self._store.require(call, session, operation.memory_id)

        return self.deleting(call, find, operation.expected_version, cascade=operation.cascade)

    def deleting(
        self, call: Call, find: Find, expected_version: int | None, *, cascade: bool
    ) -> Callable[[WriteTransaction], records.MemoryDeleted]:
        """The write that deletes a memory, however it is found."""

        def write(transaction: WriteTransaction) -> records.MemoryDeleted:
            root = find(transaction)
            check_version(root, expected_version)
            doomed = [root]
            children: Iterable[MemoryRow] = _children(transaction, LIVING_CHILDREN, root.id)
            if cascade:
                doomed, children = self._tree(call, transaction, LIVING_TREE, root.id)
            detached_ids = self._detach(call, transaction, children)
            deleted = [
                self._store.supersede(call, transaction, row, as_deleted(call, row))
                for row in doomed
            ]
            present = next(row for row in deleted if row.id == root.id)
            return {
                "status": "success",
                "memory_id": root.id,
                "version": present.version,
                "seq": max(row.seq for row in deleted),
                "deleted_ids": [row.id for row in deleted],
                "detached_ids": detached_ids,
            }

        return write

    @writes(Purge)
    def purge(
        self, call: Call, operation: Purge
    ) -> Callable[[WriteTransaction], records.MemoryPurged]:
        def write(transaction: WriteTransaction) -> records.MemoryPurged:
            root = self._store.find(call, transaction, operation.memory_id)
            if root is None:
                raise no_such_memory(operation.memory_id)
            doomed = [root]
            children: Iterable[MemoryRow] = _children(transaction, ALL_CHILDREN, root.id)
            if operation.cascade:
                doomed, children = self._tree(call, transaction, WHOLE_TREE, root.id)
            derived_ids = self._derived(call, transaction, doomed)
            self._detach(call, transaction, children)
            self._store.erase(call, transaction, doomed)
            return {
                "status": "success",
                "seq": transaction.changes[-1].seq,
                "purged": len(doomed),
                "derived_ids": derived_ids,
                "wiped": False,
            }

        async def finish(purged: records.MemoryPurged) -> records.MemoryPurged:
            return {**purged, "wiped": await self._wiped(call)}

        write.finish = finish  # type: ignore[attr-defined]
        return write

    def expire(self, call: Call, transaction: WriteTransaction, row: MemoryRow) -> None:
        """Delete a memory whose time is over, softly; what hangs below it stays."""
        self._detach(call, transaction, _children(transaction, LIVING_CHILDREN, row.id))
        self._store.supersede(call, transaction, row, as_deleted(call, row), operation=EXPIRE)

    def erase(self, call: Call, transaction: WriteTransaction, rows: Sequence[MemoryRow]) -> None:
        """Remove memories for good; what hangs below them stays."""
        doomed = {row.id for row in rows}
        for row in rows:
            children = _children(transaction, ALL_CHILDREN, row.id)
            self._detach(call, transaction, (c for c in children if c.id not in doomed))
        self._store.erase(call, transaction, rows)

    def _derived(self, call: Call, session: Session, doomed: list[MemoryRow]) -> list[str]:
        """What was made from some memories and may repeat them, as far as the caller may see it:
        it is known by its links, which go with them."""
        made = [(num, None) for num in descendants(session, [row.num for row in doomed])]
        rows = (row for row, _ in self._store.rows_of(session, made))
        return [row.id for row in rows if call.grants.allows(row.namespace, "read")]

    def _tree(
        self, call: Call, session: Session, sql: str, memory_id: str
    ) -> tuple[list[MemoryRow], Iterable[MemoryRow]]:
        """Of the tree below a memory, what the caller may take with it, and what hangs directly
        below that and is not the caller's to take."""
        limit = self._validator.limits.tree_nodes_max
        nodes = session.execute(sql, (memory_id, limit + 1))
        self._validator.at_most("tree_nodes_max", "the tree", len(nodes), "memories")
        found = sorted((MemoryRow(*row) for row in nodes), key=lambda row: row.num)
        foreign = {row.id for row in found if not call.grants.allows(row.namespace, call.access)}
        if not foreign:
            return found, []
        children: dict[str | None, list[MemoryRow]] = {}
        for row in found:
            children.setdefault(row.parent_id, []).append(row)
        doomed: list[MemoryRow] = []
        detached: list[MemoryRow] = []
        waiting = [row for row in found if row.id == memory_id]
        while waiting:
            row = waiting.pop()
            doomed.append(row)
            for child in children.get(row.id, ()):
                (detached if child.id in foreign else waiting).append(child)
        return sorted(doomed, key=lambda row: row.num), detached

    def _detach(
        self, call: Call, transaction: WriteTransaction, children: Iterable[MemoryRow]
    ) -> list[str]:
        """Let some memories hang below nothing; the ids of those that the caller may see."""
        seen: list[str] = []
        for child in children:
            self._store.supersede(
                call,
                transaction,
                child,
                msgspec.structs.replace(child, parent_id=None),
                operation="detach_from_parent",
            )
            if call.grants.allows(child.namespace, "read"):
                seen.append(child.id)
        return seen


def _children(session: Session, sql: str, memory_id: str) -> Iterator[MemoryRow]:
    """What hangs directly below a memory, however much, a bounded number at a time."""
    last = (-1, -1)
    while True:
        found = session.execute(sql, (memory_id, *last, CHILDREN_AT_ONCE))
        for row in (MemoryRow(*columns) for columns in found):
            yield row
            last = (row.created_us, row.num)
        if len(found) < CHILDREN_AT_ONCE:
            return
