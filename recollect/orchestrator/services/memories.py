"""Storing, reading and changing single memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET

from recollect.orchestrator.accesses import AccessLog
from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import parse_moment, to_iso
from recollect.orchestrator.drafts import Drafting, MemoryPatch
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memory_store import MemoryStore, check_version, no_such_memory
from recollect.orchestrator.memory_texts import meaning_of
from recollect.orchestrator.rows import (
    CachedMemory,
    MemoryRow,
    lasting_record,
    record_of,
    strength_at,
    with_strength,
)
from recollect.orchestrator.rows_at_hand import CACHED_CHARS_MAX
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.strength import Fading
from recollect.protocol import records
from recollect.protocol.errors import Forbidden, InvalidArgument, RecollectError
from recollect.protocol.operations import (
    AddMemory,
    GetMemory,
    ReinforceMemory,
    Restore,
    UpdateMemory,
)

MemoryFunction = Callable[[WriteTransaction], records.MemoryChanged]


class Adding:
    """The write of one new memory; its vector is made before, or with the batch it falls into."""

    __slots__ = ("_call", "_draft", "_embedded", "_store", "_text", "texts")

    def __init__(
        self, store: MemoryStore, call: Call, draft: MemoryRow, embedded: Embedded | None
    ) -> None:
        self._store = store
        self._call = call
        self._draft = draft
        self._embedded = embedded
        self._text = meaning_of(draft)
        self.texts = (self._text,) if embedded is None else ()

    def __call__(self, transaction: WriteTransaction) -> records.MemoryAdded:
        draft, store = self._draft, self._store
        store.check_parent(self._call, transaction, draft, draft.parent_id)
        store.check_key_free(self._call, transaction, draft)
        embedded = self._embedded or transaction.prefetched.embedded(self._text)
        store.insert(self._call, transaction, [draft], embedded)
        return {
            "status": "success",
            "memory_id": draft.id,
            "version": 1,
            "seq": draft.seq,
            "created_at": to_iso(draft.created_us),
        }


class MemoryService:
    """One memory at a time."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        drafting: Drafting,
        fading: Fading,
        accesses: AccessLog,
    ) -> None:
        self._storage = storage
        self._store = store
        self._drafting = drafting
        self._fading = fading
        self._accesses = accesses

    @writes(AddMemory)
    def add_memory(self, call: Call, operation: AddMemory) -> Adding | Awaitable[Adding]:
        draft = self._drafting.memory(operation, call.now_us, call.author, call.session)
        if self._store.meanings.current.embedding.inline:
            return Adding(self._store, call, draft, None)
        return self._add_embedded(call, draft)

    async def _add_embedded(self, call: Call, draft: MemoryRow) -> Adding:
        embedded = await self._store.meanings.embed_one(meaning_of(draft))
        return Adding(self._store, call, draft, embedded)

    @reads(GetMemory)
    def get_memory(
        self, call: Call, operation: GetMemory
    ) -> records.MemoryFetched | Awaitable[records.MemoryFetched]:
        if operation.as_of is not None or operation.version is not None:
            return self._get_past(call, operation)
        memory_id = operation.memory_id
        cached = self._store.cache.get(memory_id)
        if cached is not None:
            return self._fetched(call, operation, cached)
        ticket = self._store.cache.ticket()
        if self._storage.inline_reads:
            row = self._storage.read_inline(
                lambda session: self._store.find(call, session, memory_id)
            )
            return self._found(call, operation, row, ticket)
        return self._get_far(call, operation, ticket)

    async def _get_far(
        self, call: Call, operation: GetMemory, ticket: int
    ) -> records.MemoryFetched:
        row = await self._storage.read(
            lambda session: self._store.find(call, session, operation.memory_id)
        )
        return self._found(call, operation, row, ticket)

    def _found(
        self, call: Call, operation: GetMemory, row: MemoryRow | None, ticket: int
    ) -> records.MemoryFetched:
        if row is None:
            raise no_such_memory(operation.memory_id)
        self._accesses.apply(row)
        cached = CachedMemory(row, lasting_record(row))
        if len(row.content) + len(row.metadata) + len(row.value or "") <= CACHED_CHARS_MAX:
            self._store.cache.keep(row.id, cached, ticket)
        return self._fetched(call, operation, cached)

    def _fetched(
        self, call: Call, operation: GetMemory, cached: CachedMemory
    ) -> records.MemoryFetched:
        row = cached.row
        hidden = not call.sees(row.namespace, row.id)
        if hidden or (not row.alive(call.now_us) and not operation.include_deleted):
            raise no_such_memory(operation.memory_id)
        fetched: records.MemoryFetched = {
            "status": "success",
            "memory": with_strength(cached.lasting, row, call.now_us),
        }
        if row.deleted_us is None:
            self._accesses.note(row.id, call.now_us)
        return fetched

    async def _get_past(self, call: Call, operation: GetMemory) -> records.MemoryFetched:
        if operation.as_of is not None and operation.version is not None:
            raise InvalidArgument("Give as_of or version, not both.", field="as_of")
        moment_us = parse_moment("as_of", operation.as_of)

        def read(session: Session) -> MemoryRow:
            if moment_us is not None:
                return self._store.at_moment(call, session, operation.memory_id, moment_us)
            assert operation.version is not None
            return self._store.in_version(call, session, operation.memory_id, operation.version)

        row = await self._storage.read(read)
        return {"status": "success", "memory": record_of(row, call.now_us)}

    @writes(UpdateMemory)
    async def update_memory(self, call: Call, operation: UpdateMemory) -> MemoryFunction:
        patch = self._drafting.patch(operation.update_payload)
        embedded = None
        if not (patch.content is patch.metadata is patch.metadata_patch is UNSET):
            embedded = await self._embed_changed(call, operation.memory_id, patch)

        def write(transaction: WriteTransaction) -> records.MemoryChanged:
            old = self._store.require(call, transaction, operation.memory_id)
            check_version(old, operation.expected_version)
            new = self._drafting.apply(old, patch)
            if new.parent_id != old.parent_id:
                self._store.check_parent(call, transaction, new, new.parent_id)
            new = self._store.supersede(call, transaction, old, new, embedded)
            return changed(new)

        return write

    async def _embed_changed(
        self, call: Call, memory_id: str, patch: MemoryPatch
    ) -> Embedded | None:
        """The vector that a memory will have; the write makes sure that it fits."""
        row = await self._storage.read(lambda session: self._store.find(call, session, memory_id))
        if row is None:
            return None
        try:
            changed_row = self._drafting.apply(row, patch)
        except RecollectError:
            return None
        text = meaning_of(changed_row)
        return None if text == meaning_of(row) else await self._store.meanings.embed_one(text)

    @writes(Restore)
    async def restore(self, call: Call, operation: Restore) -> MemoryFunction:
        embedded = None
        try:
            text = await self._storage.read(
                lambda session: meaning_of(self._version_to_restore(call, session, operation))
            )
            embedded = await self._store.meanings.embed_one(text)
        except RecollectError:
            pass  # the write decides, for it may be a repetition that was answered before

        def write(transaction: WriteTransaction) -> records.MemoryChanged:
            session = transaction
            old = self._store.find(call, session, operation.memory_id)
            if old is None:
                raise no_such_memory(operation.memory_id)
            check_version(old, operation.expected_version)
            source = self._version_to_restore(call, session, operation)
            new = msgspec.structs.replace(source, deleted_us=None, archived_us=None)
            new = self._drafting.refaded(old, new)
            if new.expires_us is not None and new.expires_us <= call.now_us:
                new.expires_us = None
            if not self._parent_stands(call, session, new.parent_id):
                new.parent_id = None
            self._store.check_parent(call, session, new, new.parent_id)
            self._store.check_key_free(call, transaction, new)
            new = self._store.supersede(call, transaction, old, new, embedded)
            return changed(new)

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

    def _version_to_restore(self, call: Call, session: Session, operation: Restore) -> MemoryRow:
        if operation.version is not None:
            row = self._store.in_version(call, session, operation.memory_id, operation.version)
            if row.operation != "delete_memory":
                return row
            raise InvalidArgument(
                f"Version {operation.version} is the deletion itself; choose an earlier one.",
                field="version",
            )
        current = self._store.find(call, session, operation.memory_id)
        if current is None:
            raise no_such_memory(operation.memory_id)
        if current.deleted_us is None:
            raise InvalidArgument(
                f"Memory {operation.memory_id} is not deleted; name the version to go back to.",
                field="version",
            )
        return current

    @writes(ReinforceMemory)
    def reinforce_memory(
        self, call: Call, operation: ReinforceMemory
    ) -> Callable[[WriteTransaction], records.MemoryReinforced]:
        reads_before = self._accesses.take(operation.memory_id)

        def write(transaction: WriteTransaction) -> records.MemoryReinforced:
            row = self._store.require(call, transaction, operation.memory_id)
            row.stability_s = self._fading.grown(row.stability_s, reads_before)
            row.access_count += reads_before
            self._fading.reinforce(row, operation.reinforcement_factor, call.now_us)
            self._store.reinforced(call, transaction, row)
            return {
                "status": "success",
                "memory_id": row.id,
                "seq": row.seq,
                "strength": strength_at(row, call.now_us),
                "stability_s": row.stability_s,
                "access_count": row.access_count,
                "fades_at": to_iso(row.fades_us),
            }

        return write


def changed(row: MemoryRow) -> records.MemoryChanged:
    """The answer to a change."""
    return {
        "status": "success",
        "memory_id": row.id,
        "version": row.version,
        "seq": row.seq,
        "updated_at": to_iso(row.updated_us),
    }
