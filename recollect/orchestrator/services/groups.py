"""Context groups: memories that belong to one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from recollect.orchestrator.calls import Call, reads, record, writes
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import JOINED_COLUMNS, PRESENT, MemoryRow
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.services.listing import listed
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import NotFound
from recollect.protocol.operations import AddToGroup, CreateContextGroup, GetMemoriesByGroup

INSERT_GROUP = """
INSERT INTO context_groups (id, namespace, name, description, created_us, created_by)
VALUES (?, ?, ?, ?, ?, ?)
"""
FIND_GROUP = "SELECT namespace FROM context_groups WHERE id = ?"
JOIN_GROUP = """
INSERT INTO group_members (group_id, num, joined_seq) VALUES (?, ?, ?)
ON CONFLICT (group_id, num) DO NOTHING
"""
MEMBERS = f"""
SELECT g.joined_seq, {JOINED_COLUMNS}
FROM group_members g JOIN memories m ON m.num = g.num
WHERE g.group_id = ? AND g.joined_seq > ?
    AND {PRESENT} AND (m.expires_us IS NULL OR m.expires_us > ?) AND {{readable}}
ORDER BY g.joined_seq LIMIT ?
"""


class GroupService:
    """Groups and their members."""

    def __init__(
        self, storage: Storage, store: MemoryStore, validator: Validator, ids: IdSource
    ) -> None:
        self._storage = storage
        self._store = store
        self._validator = validator
        self._ids = ids

    @writes(CreateContextGroup)
    def create_context_group(
        self, call: Call, operation: CreateContextGroup
    ) -> Callable[[WriteTransaction], records.GroupCreated]:
        namespace = self._validator.namespace(operation.namespace)
        self._validator.text("name", operation.name, "key_chars_max")
        description = operation.description
        if description is not None:
            description = self._validator.prose("description", description, "content_chars_max")

        def write(transaction: WriteTransaction) -> records.GroupCreated:
            group_id = self._ids.new()
            transaction.execute(
                INSERT_GROUP,
                (
                    group_id,
                    namespace,
                    operation.name,
                    description,
                    call.now_us,
                    call.author,
                ),
            )
            seq = record(call, transaction, subject=group_id, namespace=namespace)
            return {
                "status": "success",
                "group_id": group_id,
                "name": operation.name,
                "seq": seq,
            }

        return write

    @writes(AddToGroup)
    def add_to_group(
        self, call: Call, operation: AddToGroup
    ) -> Callable[[WriteTransaction], records.GroupJoined]:
        def write(transaction: WriteTransaction) -> records.GroupJoined:
            row = self._store.require(call, transaction, operation.memory_id, access="read")
            namespace = _namespace_of(call, transaction, operation.group_id)
            seq = record(call, transaction, subject=operation.group_id, namespace=namespace)
            transaction.execute(JOIN_GROUP, (operation.group_id, row.num, seq))
            return {
                "status": "success",
                "group_id": operation.group_id,
                "memory_id": row.id,
                "seq": seq,
            }

        return write

    @reads(GetMemoriesByGroup)
    def get_memories_by_group(
        self, call: Call, operation: GetMemoriesByGroup
    ) -> asyncio.Future[records.MemoriesListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1)
        after = position[0] if position else 0

        def read(session: Session) -> records.MemoriesListed:
            _namespace_of(call, session, operation.group_id)
            readable, patterns = readable_condition(call.grants.within(None), "m.namespace")
            sql = MEMBERS.format(readable=readable)
            params = (operation.group_id, after, call.now_us, *patterns, limit + 1)
            members = session.execute(sql, params)
            cursor = None
            if len(members) > limit:
                members = members[:limit]
                cursor = make_cursor(operation, [members[-1][0]])
            found = [MemoryRow(*row) for _, *row in members]
            return listed(found, call.now_us, cursor)

        return self._storage.read(read)


def _namespace_of(call: Call, session: Session, group_id: str) -> str:
    found = session.execute(FIND_GROUP, (group_id,))
    if not found or not call.sees(found[0][0], group_id):
        raise NotFound(f"There is no group {group_id!r}.", group_id=group_id)
    namespace: str = found[0][0]
    call.require(namespace, group_id)
    return namespace
