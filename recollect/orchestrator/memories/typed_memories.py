"""Memories that are more than a text: a goal, a task, a decision, a procedure, a pattern.

Each is a memory of its own collection with typed columns beside it, written in one transaction. The
memory says what it is about, whose it is and whether it is still there; its table says the rest. So
a typed column is never read without the row of its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.keys import Keys
from recollect.orchestrator.memories.memory_store import MemoryStore, check_version
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol.collection_names import COLLECTIONS
from recollect.protocol.errors import AlreadyExists, NotFound, RecollectError
from recollect.protocol.operation import Access
from recollect.protocol.operations import AddMemory

# Everything that a new version of a keyed record takes from its draft.
RENEWED = ("memory_type", "content", "value", "metadata", "tags", "importance", "source", "trust")


class Draft(msgspec.Struct, frozen=True):
    """A memory about to be written, with its vector."""

    row: MemoryRow
    embedded: Embedded


class TypedMemories:
    """Finds and writes the memories of such records."""

    def __init__(self, store: MemoryStore, drafting: Drafting, keys: Keys) -> None:
        self.store = store
        self._drafting = drafting
        self._keys = keys

    def row(self, call: Call, collection: str, adding: AddMemory) -> MemoryRow:
        """A checked row for a new memory of a collection."""
        row = self._drafting.memory(adding, call.now_us, call.author, call.session)
        assert collection in COLLECTIONS, collection
        row.collection = collection
        row.operation = call.operation
        return row

    async def draft(self, call: Call, collection: str, adding: AddMemory) -> Draft:
        """A memory of a collection, checked and embedded; nothing is written yet."""
        row = self.row(call, collection, adding)
        return Draft(row, await self.embed(row))

    async def embed(self, row: MemoryRow) -> Embedded:
        """The vector of a row that is about to be written."""
        return await self.store.meanings.embed_one(meaning_of(row))

    async def embed_next(
        self, storage: Storage, next_row: Callable[[Session], MemoryRow]
    ) -> Embedded | None:
        """The vector of a record as it will read after a change; the write makes sure it fits."""
        try:
            row = await storage.read(next_row)
        except RecollectError:
            return None  # the write decides, for it may be a repetition that was answered before
        return await self.embed(row)

    def insert(self, call: Call, transaction: WriteTransaction, draft: Draft) -> MemoryRow:
        """Write a new memory; its key, if it has one, must be free."""
        self.store.check_parent(call, transaction, draft.row, draft.row.parent_id)
        self.store.check_key_free(call, transaction, draft.row)
        self.store.insert(call, transaction, [draft.row], draft.embedded)
        return draft.row

    def put(
        self,
        call: Call,
        transaction: WriteTransaction,
        draft: Draft,
        expected_version: int | None = None,
    ) -> tuple[MemoryRow, bool]:
        """Write a draft as the next version of what has its key, or as new; whether it is new."""
        holder = self.holder(call, transaction, draft.row)
        if holder is None:
            if expected_version is not None:
                raise self._absent(draft.row)
            return self.insert(call, transaction, draft), True
        check_version(holder, expected_version)
        changes: dict[str, Any] = {name: getattr(draft.row, name) for name in RENEWED}
        return self.change(call, transaction, holder, draft.embedded, **changes), False

    def holder(self, call: Call, session: Session, row: MemoryRow) -> MemoryRow | None:
        """The living record that has the key of a draft; refuses a key that is something else's."""
        assert row.key is not None
        holder = self._keys.holder(call, session, (row.namespace, row.key))
        if holder is None or not holder.alive(call.now_us):
            return None
        if holder.collection != row.collection:
            raise AlreadyExists(
                f"The key {row.key!r} in {row.namespace} is that of a memory in the collection "
                f"{holder.collection}: delete it, or choose another name.",
                memory_id=holder.id,
            )
        return holder

    def change(
        self,
        call: Call,
        transaction: WriteTransaction,
        old: MemoryRow,
        embedded: Embedded | None = None,
        **changes: Any,
    ) -> MemoryRow:
        """Make the next version of a record, back from the archive if it was there.

        Also where only typed columns change: then it is the same text in a new version, which is
        what shows the change to the audit, to caches and to whoever follows.
        """
        new = msgspec.structs.replace(old, archived_us=None, **changes)
        new = self._drafting.with_time_left(self._drafting.refaded(old, new), call.now_us)
        return self.store.supersede(call, transaction, old, new, embedded)

    def require(
        self,
        call: Call,
        session: Session,
        collection: str,
        memory_id: str,
        what: str,
        access: Access | None = None,
    ) -> MemoryRow:
        """The living memory of a record by its id; `what` is what people call such a record."""
        row = self.store.find(call, session, memory_id, access)
        if row is None or not row.alive(call.now_us) or row.collection != collection:
            raise NotFound(f"There is no {what} {memory_id!r}.", memory_id=memory_id)
        return row

    def require_key(
        self, call: Call, session: Session, collection: str, namespace: str, key: str, what: str
    ) -> MemoryRow:
        """The living memory of a record by its namespace and key."""
        place = self._keys.place(namespace, key)
        row = self._keys.holder(call, session, place)
        if row is None or not row.alive(call.now_us) or row.collection != collection:
            name = key.partition("/")[2] or key
            raise NotFound(
                f"There is no {what} {name!r} in {namespace}.", namespace=namespace, name=name
            )
        return row

    def _absent(self, row: MemoryRow) -> NotFound:
        assert row.key is not None
        name = row.key.partition("/")[2] or row.key
        return NotFound(
            f"There is no {name!r} in {row.namespace} yet: leave expected_version out to make it.",
            namespace=row.namespace,
            name=name,
        )
