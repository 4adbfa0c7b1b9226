"""Typed, weighted links between memories, found from both ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, reads, record, writes
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow, record_of
from recollect.orchestrator.search.scope import readable_condition
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument, LimitExceeded
from recollect.protocol.operations import AddRelationship, GetRelatedMemories

LINK = """
INSERT INTO relationships
    (source_num, relationship_type, target_num, strength, created_us, created_by)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_num, relationship_type, target_num) DO UPDATE SET strength = excluded.strength
"""
ALIVE = "m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)"
LINKS_OUT = f"""
SELECT r.target_num, r.relationship_type, r.strength
FROM relationships r JOIN memories m ON m.num = r.target_num
WHERE r.source_num = ? AND {ALIVE} AND {{readable}} {{of_type}}
ORDER BY r.strength DESC, r.target_num LIMIT ?
"""
LINKS_IN = f"""
SELECT r.source_num, r.relationship_type, r.strength
FROM relationships r JOIN memories m ON m.num = r.source_num
WHERE r.target_num = ? AND {ALIVE} AND {{readable}} {{of_type}}
ORDER BY r.strength DESC, r.source_num LIMIT ?
"""
DIRECTIONS = {"out": ("out",), "in": ("in",), "both": ("out", "in")}


class Link(msgspec.Struct, frozen=True):
    """One step of a walk."""

    num: int
    relationship_type: str
    strength: float
    direction: str
    depth: int
    via: str


class RelationshipService:
    """Links and walks along them."""

    def __init__(self, storage: Storage, store: MemoryStore, validator: Validator) -> None:
        self._storage = storage
        self._store = store
        self._validator = validator

    @writes(AddRelationship)
    def add_relationship(
        self, call: Call, operation: AddRelationship
    ) -> Callable[[WriteTransaction], records.RelationshipAdded]:
        if operation.source_id == operation.target_id:
            raise InvalidArgument(
                "A memory cannot be related to itself: source_id and target_id are the same.",
                field="target_id",
            )
        self._validator.text("relationship_type", operation.relationship_type, "key_chars_max")

        def write(transaction: WriteTransaction) -> records.RelationshipAdded:
            source = self._store.require(call, transaction, operation.source_id, "source memory")
            target = self._store.require(
                call, transaction, operation.target_id, "target memory", "read"
            )
            transaction.execute(
                LINK,
                (
                    source.num,
                    operation.relationship_type,
                    target.num,
                    operation.strength,
                    call.now_us,
                    call.author,
                ),
            )
            seq = record(
                call,
                transaction,
                subject=source.id,
                namespace=source.namespace,
                version_before=source.version,
                version_after=source.version,
            )
            return {
                "status": "success",
                "source_id": source.id,
                "target_id": target.id,
                "relationship_type": operation.relationship_type,
                "strength": operation.strength,
                "seq": seq,
            }

        return write

    @reads(GetRelatedMemories)
    def get_related_memories(
        self, call: Call, operation: GetRelatedMemories
    ) -> asyncio.Future[records.RelatedFound]:
        limits = self._validator.limits
        self._validator.at_most("relationship_results_max", "limit", operation.limit, "items")
        if operation.depth > limits.walk_depth_max:
            raise LimitExceeded(
                f"depth is {operation.depth}; the limit limits.walk_depth_max is "
                f"{limits.walk_depth_max}.",
                field="depth",
                limit="limits.walk_depth_max",
                maximum=limits.walk_depth_max,
            )

        def read(session: Session) -> records.RelatedFound:
            start = self._store.require(call, session, operation.memory_id)
            related: list[records.RelatedMemory] = [
                {
                    "memory": record_of(row, call.now_us),
                    "relationship_type": link.relationship_type,
                    "strength": link.strength,
                    "direction": link.direction,
                    "depth": link.depth,
                    "via": link.via,
                }
                for row, link in self._walk(call, session, start, operation)
            ]
            return {"status": "success", "related": related, "count": len(related)}

        return self._storage.read(read)

    def _walk(
        self, call: Call, session: Session, start: MemoryRow, operation: GetRelatedMemories
    ) -> list[tuple[MemoryRow, Link]]:
        """Breadth first: every memory once, by its nearest and strongest link.

        The walk does not pass through what the caller may not see.
        """
        seen = {start.num}
        found: list[tuple[MemoryRow, Link]] = []
        frontier = [start]
        for depth in range(1, operation.depth + 1):
            links = [
                link
                for row in frontier
                for link in self._links(call, session, row, operation, depth)
            ]
            links.sort(key=lambda link: -link.strength)
            frontier = []
            for link in links:
                if link.num in seen:
                    continue
                seen.add(link.num)
                row = MemoryRow(*session.execute(SELECT_BY_NUM, (link.num,))[0])
                found.append((row, link))
                frontier.append(row)
                if len(found) >= operation.limit:
                    return found
        return found

    def _links(
        self,
        call: Call,
        session: Session,
        row: MemoryRow,
        operation: GetRelatedMemories,
        depth: int,
    ) -> list[Link]:
        readable, patterns = readable_condition(call.grants.within(None), "m.namespace")
        of_type, params = "", list[Any]()
        if operation.relationship_type is not None:
            of_type, params = "AND r.relationship_type = ?", [operation.relationship_type]
        limit = self._validator.limits.relationship_results_max
        links: list[Link] = []
        for direction in DIRECTIONS[operation.direction]:
            sql = LINKS_OUT if direction == "out" else LINKS_IN
            rows: list[tuple[Any, ...]] = session.execute(
                sql.format(of_type=of_type, readable=readable),
                (row.num, call.now_us, *patterns, *params, limit),
            )
            links += [
                Link(num, kind, strength, direction, depth, row.id) for num, kind, strength in rows
            ]
        return links
