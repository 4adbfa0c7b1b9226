"""New versions of one memory, however it was found: by its id or by its key."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting, MemoryPatch
from recollect.orchestrator.memories.memory_store import MemoryStore, check_version
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.typed_columns import check_text
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol import records
from recollect.protocol.errors import Forbidden, InvalidArgument, RecollectError

Find = Callable[[Session], MemoryRow]
"""Finds the memory that is meant, or refuses; asked again in the write itself."""
MemoryFunction = Callable[[WriteTransaction], records.MemoryChanged]


class Changing:
    """Updates and restores; what needs a vector gets it before the write."""

    def __init__(self, storage: Storage, store: MemoryStore, drafting: Drafting) -> None:
        self._storage = storage
        self._store = store
        self._drafting = drafting

    async def update(
        self, call: Call, find: Find, patch: MemoryPatch, expected_version: int | None
    ) -> MemoryFunction:
        """The write that makes some changes to a living memory."""
        embedded = None
        if not (patch.content is patch.metadata is patch.metadata_patch is UNSET):
            embedded = await self._embed_changed(find, patch)

        def write(transaction: WriteTransaction) -> records.MemoryChanged:
            old = find(transaction)
            check_version(old, expected_version)
            new = self._drafting.with_time_left(self._drafting.apply(old, patch), call.now_us)
            check_text(old, new)
            if new.parent_id != old.parent_id:
                self._store.check_parent(call, transaction, new, new.parent_id)
            return changed(self._store.supersede(call, transaction, old, new, embedded))

        return write

    async def _embed_changed(self, find: Find, patch: MemoryPatch) -> Embedded | None:
        """The vector that a memory will have; the write makes sure that it fits."""
        try:
            row = await self._storage.read(find)
            changed_row = self._drafting.apply(row, patch)
        except RecollectError:
            return None  # the write decides, for it may be a repetition that was answered before
        text = meaning_of(changed_row)
        return None if text == meaning_of(row) else await self._store.meanings.embed_one(text)

    async def restore(
        self, call: Call, find: Find, version: int | None, expected_version: int | None
    ) -> MemoryFunction:
        """The write that makes an old version the present one again."""

        def source_of(session: Session) -> MemoryRow:
            return self._version_to_restore(call, session, find(session), version)

        embedded = None
        try:
            text = meaning_of(await self._storage.read(source_of))
            embedded = await self._store.meanings.embed_one(text)
        except RecollectError:
            pass  # as above

        def write(transaction: WriteTransaction) -> records.MemoryChanged:
            old = find(transaction)
            check_version(old, expected_version)
            source = source_of(transaction)
            new = msgspec.structs.replace(source, deleted_us=None, archived_us=None)
            new = self._drafting.with_time_left(self._drafting.refaded(old, new), call.now_us)
            if new.expires_us is not None and new.expires_us <= call.now_us:
                new.expires_us = None
            if not self._parent_stands(call, transaction, new.parent_id):
                new.parent_id = None
            self._store.check_parent(call, transaction, new, new.parent_id)
            self._store.check_key_free(call, transaction, new)
            return changed(self._store.supersede(call, transaction, old, new, embedded))

        return write

    def _parent_stands(self, call: Call, session: Session, parent_id: str | None) -> bool:
        """Whether a memory can be put back below the parent that it had."""
        if parent_id is None:
            return False
        try:
            parent = self._store.find(call, session, parent_id, "write")
        except Forbidden:
            return False
        return parent is not None and parent.alive(call.now_us)

    def _version_to_restore(
        self, call: Call, session: Session, current: MemoryRow, version: int | None
    ) -> MemoryRow:
        if version is not None:
            row = self._store.in_version(call, session, current.id, version)
            if row.deleted_us is None:
                return row
            raise InvalidArgument(
                f"Version {version} is the deletion itself; choose an earlier one.",
                field="version",
            )
        if current.alive(call.now_us):
            raise InvalidArgument(
                f"Memory {current.id} is not deleted; name the version to go back to.",
                field="version",
            )
        return current


def changed(row: MemoryRow) -> records.MemoryChanged:
    """The answer to a change."""
    return {
        "status": "success",
        "memory_id": row.id,
        "version": row.version,
        "seq": row.seq,
        "updated_at": to_iso(row.updated_us),
    }
