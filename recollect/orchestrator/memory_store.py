"""The memories as the services see them: found, inserted, superseded, erased.

Every change goes through here, so that row, version, vector, words, journal, cache and index always
move together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from recollect.orchestrator import rows
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.embedding.interface import Embedder, Vectors
from recollect.orchestrator.rows import CachedMemory, MemoryRow
from recollect.orchestrator.search.vectors import VectorIndex
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.errors import AlreadyExists, CycleRefused, NotFound, VersionConflict

INSERT_VECTOR = Insert("vectors", ("num", "model", "vector"))
REPLACE_VECTOR = """
INSERT INTO vectors (num, model, vector) VALUES (?, ?, ?)
ON CONFLICT (num) DO UPDATE SET model = excluded.model, vector = excluded.vector
"""
SELECT_VECTOR = "SELECT vector FROM vectors WHERE num = ? AND model = ?"
KEY_HOLDER = "SELECT id FROM memories WHERE namespace = ? AND key = ? AND deleted_us IS NULL"
VERSION_AT = """
SELECT snapshot FROM versions WHERE num = ? AND updated_us <= ? ORDER BY version DESC LIMIT 1
"""
VERSION_BY_NUMBER = "SELECT snapshot FROM versions WHERE num = ? AND version = ?"
# The depth bounds the walk even if a cycle had come into the table.
ANCESTORS = """
WITH RECURSIVE up (id, depth) AS (
    SELECT parent_id, 1 FROM memories WHERE id = ?
    UNION
    SELECT m.parent_id, up.depth + 1 FROM memories m JOIN up ON m.id = up.id
    WHERE up.depth < 100000
)
SELECT 1 FROM up WHERE id = ? LIMIT 1
"""
ERASE = (
    "DELETE FROM memories WHERE num = ?",
    "DELETE FROM versions WHERE num = ?",
    "DELETE FROM vectors WHERE num = ?",
    "DELETE FROM relationships WHERE source_num = ?",
    "DELETE FROM relationships WHERE target_num = ?",
    "DELETE FROM group_members WHERE num = ?",
)


class MemoryStore:
    """Rows of memories with everything that hangs on them."""

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex,
        cache: LocalCache[CachedMemory],
        ids: IdSource,
    ) -> None:
        self.embedder = embedder
        self.index = index
        self.cache = cache
        self._ids = ids

    def find(self, session: Session, memory_id: str) -> MemoryRow | None:
        """The row of a memory, whatever its state."""
        found = session.execute(rows.SELECT_BY_ID, (memory_id,))
        return MemoryRow(*found[0]) if found else None

    def require(
        self, session: Session, memory_id: str, now_us: int, what: str = "memory"
    ) -> MemoryRow:
        """The row of a living memory."""
        row = self.find(session, memory_id)
        if row is None or not row.alive(now_us):
            raise no_such_memory(memory_id, what)
        return row

    def at_moment(self, session: Session, memory_id: str, moment_us: int) -> MemoryRow:
        """The memory as it was at a time."""
        row = self.find(session, memory_id)
        if row is not None and row.updated_us > moment_us:
            found = session.execute(VERSION_AT, (row.num, moment_us))
            row = rows.with_snapshot(row, found[0][0]) if found else None
        if row is None or not row.alive(moment_us):
            raise no_such_memory(memory_id, "memory at that time")
        return row

    def in_version(self, session: Session, memory_id: str, version: int) -> MemoryRow:
        """The memory as it was in a version, also in one that says it was deleted."""
        row = self.find(session, memory_id)
        if row is not None and row.version != version:
            found = session.execute(VERSION_BY_NUMBER, (row.num, version))
            row = rows.with_snapshot(row, found[0][0]) if found else None
        if row is None:
            raise no_such_memory(memory_id, f"version {version} of memory")
        return row

    def insert(
        self,
        call: Call,
        transaction: WriteTransaction,
        drafts: list[MemoryRow],
        vectors: Iterable[Vectors],
    ) -> None:
        """Write new memories; each draft gets its number, id and sequence number."""
        for draft in drafts:
            draft.id = self._ids.new()
            draft.num = draft.seq = record(
                call,
                transaction,
                subject=draft.id,
                namespace=draft.namespace,
                version_after=1,
                operation=draft.operation,
            )
        model = self.embedder.model
        vectors = list(vectors)
        transaction.insert(rows.INSERT, map(msgspec.structs.astuple, drafts))
        transaction.insert(
            INSERT_VECTOR,
            [(d.num, model, v.tobytes()) for d, v in zip(drafts, vectors, strict=True)],
        )
        transaction.texts.update((draft.num, draft.content) for draft in drafts)
        put = self.index.put

        def enter_index() -> None:
            for draft, vector in zip(drafts, vectors, strict=True):
                put(draft.num, vector)

        transaction.after_commit.append(enter_index)

    def supersede(
        self,
        call: Call,
        transaction: WriteTransaction,
        old: MemoryRow,
        new: MemoryRow,
        vector: Vectors | None = None,
        operation: str | None = None,
    ) -> MemoryRow:
        """Make `new` the present version and keep `old` in the history."""
        new = msgspec.structs.replace(
            new,
            version=old.version + 1,
            # Time never runs backward within one history, whatever the clock does.
            updated_us=max(call.now_us, old.updated_us + 1),
            updated_by=call.author,
            operation=operation or call.operation,
        )
        new.seq = record(
            call,
            transaction,
            subject=new.id,
            namespace=new.namespace,
            version_before=old.version,
            version_after=new.version,
            operation=operation,
        )
        transaction.insert(
            rows.INSERT_VERSION,
            [(old.num, old.version, old.updated_us, new.updated_us, rows.snapshot_of(old))],
        )
        transaction.execute(rows.UPDATE, rows.update_params(new))
        if vector is not None:
            transaction.execute(REPLACE_VECTOR, (new.num, self.embedder.model, vector.tobytes()))
        was, is_now = old.deleted_us is None, new.deleted_us is None
        if old.content != new.content or was != is_now:
            transaction.texts[new.num] = new.content if is_now else None
        transaction.after_commit.append(self._index_effect(transaction, new, vector, was, is_now))
        return new

    def _index_effect(
        self,
        transaction: WriteTransaction,
        new: MemoryRow,
        vector: Vectors | None,
        was: bool,
        is_now: bool,
    ) -> Callable[[], None]:
        if is_now and not was and vector is None:
            found = transaction.execute(SELECT_VECTOR, (new.num, self.embedder.model))
            if found:
                vector = np.frombuffer(found[0][0], dtype=np.float32)

        def effect() -> None:
            self.cache.drop(new.id)
            if not is_now:
                self.index.remove(new.num)
            elif vector is not None:
                self.index.put(new.num, vector)

        return effect

    def reinforced(self, call: Call, transaction: WriteTransaction, row: MemoryRow) -> None:
        """Write a memory's strength, with an entry in the journal but no new version."""
        row.seq = record(
            call,
            transaction,
            subject=row.id,
            namespace=row.namespace,
            version_before=row.version,
            version_after=row.version,
        )
        transaction.execute(rows.UPDATE_FADING, rows.fading_params(row))
        transaction.after_commit.append(lambda: self.cache.drop(row.id))

    def erase(self, call: Call, transaction: WriteTransaction, erased: Iterable[MemoryRow]) -> None:
        """Remove memories for good; only the journal still knows that they were."""
        for row in erased:
            record(
                call,
                transaction,
                subject=row.id,
                namespace=row.namespace,
                version_before=row.version,
            )
            for statement in ERASE:
                transaction.execute(statement, (row.num,))
            transaction.texts[row.num] = None
            transaction.after_commit.append(self._forget_effect(row))

    def _forget_effect(self, row: MemoryRow) -> Callable[[], None]:
        def effect() -> None:
            self.cache.drop(row.id)
            self.index.remove(row.num)

        return effect

    def check_key_free(self, call: Call, transaction: WriteTransaction, row: MemoryRow) -> None:
        """Refuse a key that a living memory of the namespace has; an expired one gives it up."""
        if row.key is None:
            return
        found = transaction.execute(KEY_HOLDER, (row.namespace, row.key))
        if not found or found[0][0] == row.id:
            return
        holder = self.find(transaction, found[0][0])
        if holder is not None and not holder.alive(call.now_us):
            gone = msgspec.structs.replace(holder, deleted_us=call.now_us)
            self.supersede(call, transaction, holder, gone, operation="expire")
            return
        raise AlreadyExists(
            f"{row.namespace} already has a memory with the key {row.key!r}: update that one, or "
            "choose another key.",
            memory_id=found[0][0],
        )

    def check_parent(
        self, session: Session, row: MemoryRow, parent_id: str | None, now_us: int
    ) -> None:
        """Refuse a parent that is not there, or that is the memory itself or below it."""
        if parent_id is None:
            return
        if parent_id == row.id:
            raise CycleRefused("A memory cannot be its own parent.", parent_id=parent_id)
        self.require(session, parent_id, now_us, what="parent memory")
        if row.id and session.execute(ANCESTORS, (parent_id, row.id)):
            raise CycleRefused(
                f"{parent_id} is below {row.id}, so it cannot become its parent.",
                parent_id=parent_id,
            )


def check_version(row: MemoryRow, expected: int | None) -> None:
    """Refuse a change that was made with another version in mind."""
    if expected is not None and row.version != expected:
        raise VersionConflict(
            f"Memory {row.id} is at version {row.version}, not {expected}: read it again and "
            "repeat your change.",
            memory_id=row.id,
            expected_version=expected,
            actual_version=row.version,
        )


def no_such_memory(memory_id: str, what: str = "memory") -> NotFound:
    """The same for what never was, what is gone and what is not yours to see."""
    return NotFound(f"There is no {what} {memory_id!r}.", memory_id=memory_id)
