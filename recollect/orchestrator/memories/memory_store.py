"""The memories as the services see them: found, inserted, superseded, erased.

Every change goes through here, so that row, version, vector, words, journal, cache and index always
move together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from recollect.orchestrator.access import quotas
from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.calls import Call, record
from recollect.orchestrator.clock import IdSource
from recollect.orchestrator.consolidation.purging import forget_in_reports
from recollect.orchestrator.documents.purging import FallenTitle, forget_chunk, retitle
from recollect.orchestrator.embedding.meaning import Embedded, Meanings
from recollect.orchestrator.memories import rows, typed_columns
from recollect.orchestrator.memories.memory_texts import meaning_of, words_of
from recollect.orchestrator.memories.rows import CachedMemory, MemoryRow
from recollect.orchestrator.search.authors import Authors
from recollect.orchestrator.search.authorship import author_of, metadata_of
from recollect.orchestrator.search.filters import Condition
from recollect.orchestrator.storage import unwiped
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.vectors.memory_vectors import DROP_VECTOR, EMBED_LATER, MemoryVectors
from recollect.protocol.collection_names import EVENTS
from recollect.protocol.errors import AlreadyExists, CycleRefused, NotFound, VersionConflict
from recollect.protocol.operation import Access

T = TypeVar("T")

ROWS_AT_ONCE = 1_000
EXPIRE = "expire"
"""In the journal, what became of a memory whose time was over."""
# What the full text of a memory is made of.
WORDED = ("content", "metadata", "tags", "valid_from_us")
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
# Tables of the columns that some memories have beside those of all.
TYPED = (
    "goals",
    "tasks",
    "steps",
    "events",
    "decisions",
    "procedures",
    "incidents",
    "config_changes",
    "executions",
    "patterns",
)
ERASE = (
    "DELETE FROM memories WHERE num = ?",
    "DELETE FROM versions WHERE num = ?",
    *DROP_VECTOR,
    "DELETE FROM relationships WHERE source_num = ?",
    "DELETE FROM relationships WHERE target_num = ?",
    "DELETE FROM group_members WHERE num = ?",
    "DELETE FROM trimmed_writers WHERE num = ?",
    "DELETE FROM pattern_evidence WHERE pattern_num = ?",
    "DELETE FROM pattern_evidence WHERE execution_num = ?",
    *(f"DELETE FROM {table} WHERE num = ?" for table in TYPED),
    # What a context was asked for is often what the memory of the task says.
    """
    UPDATE receipts SET task_id = NULL, task_description = ''
    WHERE id IN (SELECT receipt_id FROM receipt_items WHERE num = ?)
    """,
)


class MemoryStore:
    """Rows of memories with everything that hangs on them."""

    def __init__(
        self,
        meanings: Meanings,
        cache: LocalCache[CachedMemory],
        ids: IdSource,
        authors: Authors,
    ) -> None:
        self.meanings = meanings
        self.vectors = MemoryVectors(meanings)
        self.cache = cache
        self._ids = ids
        self._authors = authors
        self.erased: Callable[[Sequence[int], str], None] = lambda nums, mark: None
        """Told, once that is durable, the numbers of memories that were removed for good."""
        self.forgotten: Callable[[Collection[str]], None] = lambda ids: None
        """Told, once that is durable, the ids of memories that were removed for good and may be
        known elsewhere: events."""
        self.added = 0
        """Memories that were stored since the start."""

    def find(
        self, call: Call, session: Session, memory_id: str, access: Access | None = None
    ) -> MemoryRow | None:
        """The row of a memory, whatever its state; None as well if the caller may not see it.

        Refuses if the caller may see it and not do with it what the operation does, or `access`.
        """
        found = session.execute(rows.SELECT_BY_ID, (memory_id,))
        if not found:
            return None
        row = MemoryRow(*found[0])
        if not call.sees(row.namespace, row.id):
            return None
        call.require(row.namespace, row.id, access)
        return row

    def rows_of(
        self, session: Session, hits: Sequence[tuple[int, T]], condition: Condition | None = None
    ) -> list[tuple[MemoryRow, T]]:
        """The rows of some memories, each with what came with its number, in the same order; of
        those that fit a condition, if there is one."""
        fits, params = ("", []) if condition is None else (f" AND {condition[0]}", condition[1])
        found: dict[int, MemoryRow] = {}
        for start in range(0, len(hits), ROWS_AT_ONCE):
            nums = [num for num, _ in hits[start : start + ROWS_AT_ONCE]]
            sql = rows.SELECT_BY_NUMS.format(marks=", ".join("?" for _ in nums)) + fits
            asked = (*nums, *params)
            found.update((row[0], MemoryRow(*row)) for row in session.execute(sql, asked))
        return [(found[num], what) for num, what in hits if num in found]

    def require(
        self,
        call: Call,
        session: Session,
        memory_id: str,
        what: str = "memory",
        access: Access | None = None,
    ) -> MemoryRow:
        """The row of a living memory."""
        row = self.find(call, session, memory_id, access)
        if row is None or not row.alive(call.now_us):
            raise no_such_memory(memory_id, what)
        return row

    def at_moment(self, call: Call, session: Session, memory_id: str, moment_us: int) -> MemoryRow:
        """The memory as it was at a time."""
        row = self.find(call, session, memory_id)
        was = None if row is None else as_it_was(session, row, moment_us)
        if was is None:
            raise no_such_memory(memory_id, "memory at that time")
        return was

    def in_version(self, call: Call, session: Session, memory_id: str, version: int) -> MemoryRow:
        """The memory as it was in a version, also in one that says it was deleted."""
        row = self.find(call, session, memory_id)
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
        embedded: Embedded,
    ) -> None:
        """Write new memories; each draft gets its number, id and sequence number."""
        quotas.take(call, transaction, len(drafts))
        for draft in drafts:
            call.require(draft.namespace, draft.key or "", "write")
            draft.id = self._ids.new()
            draft.num = draft.seq = record(
                call,
                transaction,
                subject=draft.id,
                namespace=draft.namespace,
                version_after=1,
                operation=draft.operation,
            )
        transaction.insert(rows.INSERT, map(msgspec.structs.astuple, drafts))
        quotas.own(call, transaction, [draft.num for draft in drafts])
        self.vectors.insert(transaction, drafts, embedded)
        transaction.after_commit.append(lambda: self._count_added(len(drafts)))
        authors = {self._learn_words(transaction, draft) for draft in drafts}
        for namespace, author in authors:
            self._authors.note(transaction, namespace, author)

    def bring_in(self, call: Call, transaction: WriteTransaction, row: MemoryRow) -> None:
        """Write a memory that comes from another store, under the id and in the version that it
        has; only its numbers are given here. If it is searched, its vector is made later."""
        transaction.insert(rows.INSERT, [msgspec.structs.astuple(row)])
        quotas.own(call, transaction, [row.num])
        self._authors.note(transaction, row.namespace, author_of(row.created_by, metadata_of(row)))
        if row.present:
            transaction.texts[row.num] = words_of(row)
            transaction.insert(EMBED_LATER, [(row.num,)])
        transaction.after_commit.append(lambda: self._count_added(1))

    def _count_added(self, count: int) -> None:
        self.added += count

    def _learn_words(self, transaction: WriteTransaction, row: MemoryRow) -> tuple[str, str | None]:
        """Index the words of a memory; returns its namespace and who it is by."""
        transaction.texts[row.num] = words_of(row)
        return row.namespace, author_of(row.created_by, metadata_of(row))

    def supersede(
        self,
        call: Call,
        transaction: WriteTransaction,
        old: MemoryRow,
        new: MemoryRow,
        embedded: Embedded | None = None,
        operation: str | None = None,
    ) -> MemoryRow:
        """Make `new` the present version and keep `old` in the history.

        If `new` is an earlier version, typed columns become again what they were in it.
        """
        earlier = new.version
        columns = typed_columns.columns_of(transaction, old)
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
            [
                (
                    old.num,
                    old.version,
                    old.updated_us,
                    new.updated_us,
                    rows.snapshot_of(old, columns),
                )
            ],
        )
        if columns is not None and earlier != old.version:
            typed_columns.bring_back(transaction, old, earlier)
        transaction.execute(rows.UPDATE, rows.update_params(new))
        self._follow(transaction, old, new, embedded)
        return new

    def _follow(
        self,
        transaction: WriteTransaction,
        old: MemoryRow,
        new: MemoryRow,
        embedded: Embedded | None,
    ) -> None:
        """Let words, vector, cache and index follow a change."""
        was, is_now = old.present, new.present
        if not is_now:
            transaction.texts[new.num] = None
            self.vectors.drop(transaction, new.num)
        else:
            if not was or any(getattr(old, name) != getattr(new, name) for name in WORDED):
                self._authors.note(transaction, *self._learn_words(transaction, new))
            if not was or meaning_of(old) != meaning_of(new):
                self.vectors.replace(transaction, new, embedded)
        transaction.after_commit.append(lambda: self.cache.drop(new.id))

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
        authors: set[tuple[str, str | None]] = set()
        nums: list[int] = []
        events: list[str] = []
        fallen: list[FallenTitle] = []
        for row in erased:
            nums.append(row.num)
            if row.collection == EVENTS:
                events.append(row.id)
            forget_in_reports(transaction, row.num)
            authors.add((row.namespace, author_of(row.created_by, metadata_of(row))))
            record(
                call,
                transaction,
                subject=row.id,
                namespace=row.namespace,
                version_before=row.version,
            )
            for statement in ERASE:
                transaction.execute(statement, (row.num,))
            quotas.give_back(transaction, row.num)
            fallen += forget_chunk(transaction, row)
            transaction.texts[row.num] = None
            transaction.after_commit.append(self._forget_effect(row))
        retitle(transaction, fallen, nums, partial(self.supersede, call, transaction))
        for namespace, author in authors:
            self._authors.forget(transaction, namespace, author)
        mark = unwiped.mark(transaction)
        transaction.after_commit.append(lambda: self.erased(nums, mark))
        if events:
            transaction.after_commit.append(lambda: self.forgotten(events))

    def _forget_effect(self, row: MemoryRow) -> Callable[[], None]:
        def effect() -> None:
            self.cache.drop(row.id)
            self.meanings.remove(row.num)

        return effect

    def check_key_free(self, call: Call, transaction: WriteTransaction, row: MemoryRow) -> None:
        """Refuse a key that a living memory of the namespace has; an expired one gives it up."""
        if row.key is None:
            return
        found = transaction.execute(KEY_HOLDER, (row.namespace, row.key))
        if not found or found[0][0] == row.id:
            return
        holder = self.find(call, transaction, found[0][0], "write")
        if holder is not None and not holder.alive(call.now_us):
            self.supersede(call, transaction, holder, as_deleted(call, holder), operation=EXPIRE)
            return
        raise AlreadyExists(
            f"{row.namespace} already has a memory with the key {row.key!r}: update that one, or "
            "choose another key.",
            memory_id=found[0][0],
        )

    def check_parent(
        self, call: Call, session: Session, row: MemoryRow, parent_id: str | None
    ) -> None:
        """Refuse a parent that is not there, or that is the memory itself or below it."""
        if parent_id is None:
            return
        if parent_id == row.id:
            raise CycleRefused("A memory cannot be its own parent.", parent_id=parent_id)
        self.require(call, session, parent_id, "parent memory", "write")
        if row.id and hangs_below(session, parent_id, row.id):
            raise CycleRefused(
                f"{parent_id} is below {row.id}, so it cannot become its parent.",
                parent_id=parent_id,
            )


def hangs_below(session: Session, memory_id: str, other_id: str) -> bool:
    """Whether a memory hangs somewhere below another one."""
    return bool(session.execute(ANCESTORS, (memory_id, other_id)))


def as_it_was(session: Session, row: MemoryRow, moment_us: int) -> MemoryRow | None:
    """A memory as it was at a time; None if it was not there then."""
    if row.updated_us > moment_us:
        found = session.execute(VERSION_AT, (row.num, moment_us))
        if not found:
            return None
        row = rows.with_snapshot(row, found[0][0])
    return row if row.alive(moment_us) else None


def as_deleted(call: Call, row: MemoryRow) -> MemoryRow:
    """The row of a memory that is deleted now: never before its last change."""
    return msgspec.structs.replace(row, deleted_us=max(call.now_us, row.updated_us + 1))


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
