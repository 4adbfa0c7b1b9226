"""Storing, reading and changing single memories."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import parse_moment, to_iso
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.accesses import NO_READS, AccessLog
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import MemoryStore, no_such_memory
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import (
    CachedMemory,
    MemoryRow,
    lasting_record,
    record_of,
    strength_at,
    with_strength,
)
from recollect.orchestrator.memories.rows_at_hand import CACHED_CHARS_MAX
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.services.changing import Changing, MemoryFunction
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.trust.echoes import Echoes, known_already, together
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument, RecollectError
from recollect.protocol.operations import (
    AddMemory,
    GetMemory,
    ReinforceMemory,
    Restore,
    UpdateMemory,
)


class Adding:
    """The write of one new memory; its vector is made before, or with the batch it falls into."""

    __slots__ = ("_call", "_draft", "_embedded", "_likely", "_store", "_text", "texts")

    def __init__(
        self,
        store: MemoryStore,
        call: Call,
        draft: MemoryRow,
        embedded: Embedded | None,
        likely: tuple[str, ...] = (),
    ) -> None:
        self._store = store
        self._likely = likely
        self._call = call
        self._draft = draft
        self._embedded = embedded
        self._text = meaning_of(draft)
        self.texts = (self._text,) if embedded is None else ()

    def __call__(self, transaction: WriteTransaction) -> records.MemoryAdded:
        draft, store = self._draft, self._store
        if self._likely:
            known = known_already(self._call, transaction, draft, self._likely)
            if known is not None:
                return {
                    "status": "success",
                    "memory_id": known.id,
                    "version": known.version,
                    "seq": known.seq,
                    "created_at": to_iso(known.created_us),
                    "echo_of": known.id,
                }
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
        changing: Changing,
        fading: Fading,
        accesses: AccessLog,
        echoes: Echoes | None,
    ) -> None:
        self._storage = storage
        self._store = store
        self._drafting = drafting
        self._changing = changing
        self._fading = fading
        self._accesses = accesses
        self._echoes = echoes

    @writes(AddMemory)
    def add_memory(self, call: Call, operation: AddMemory) -> Adding | Awaitable[Adding]:
        draft = self._drafting.memory(operation, call.now_us, call.author, call.session)
        served = self._echoes.likely(call) if self._echoes is not None else None
        likely = served.of(draft) if served is not None else ()
        if self._echoes is not None and self._echoes.shared and call.agent is not None:
            return self._add_after_asking(self._echoes, call, draft, likely)
        if self._store.meanings.current.embedding.inline:
            return Adding(self._store, call, draft, None, likely)
        return self._add_embedded(call, draft, likely)

    async def _add_after_asking(
        self, echoes: Echoes, call: Call, draft: MemoryRow, likely: tuple[str, ...]
    ) -> Adding:
        """The same where other orchestrators may have served what it repeats."""
        asking = echoes.elsewhere(call, [draft])
        if self._store.meanings.current.embedding.inline:
            [elsewhere] = await asking
            return Adding(self._store, call, draft, None, together(likely, elsewhere))
        embedding = self._store.meanings.embed_one(meaning_of(draft))
        [elsewhere], embedded = await asyncio.gather(asking, embedding)
        return Adding(self._store, call, draft, embedded, together(likely, elsewhere))

    async def _add_embedded(self, call: Call, draft: MemoryRow, likely: tuple[str, ...]) -> Adding:
        embedded = await self._store.meanings.embed_one(meaning_of(draft))
        return Adding(self._store, call, draft, embedded, likely)

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
            lambda session: self._store.find(call, session, operation.memory_id), asks_once=True
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
            self._store.cache.keep(row.id, cached, ticket, cached.weight)
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

        def find(session: Session) -> MemoryRow:
            return self._store.require(call, session, operation.memory_id)

        return await self._changing.update(call, find, patch, operation.expected_version)

    @writes(Restore)
    async def restore(self, call: Call, operation: Restore) -> MemoryFunction:
        def find(session: Session) -> MemoryRow:
            row = self._store.find(call, session, operation.memory_id)
            if row is None:
                raise no_such_memory(operation.memory_id)
            return row

        return await self._changing.restore(
            call, find, operation.version, operation.expected_version
        )

    @writes(ReinforceMemory)
    async def reinforce_memory(
        self, call: Call, operation: ReinforceMemory
    ) -> Callable[[WriteTransaction], records.MemoryReinforced]:
        def find(session: Session) -> MemoryRow:
            return self._store.require(call, session, operation.memory_id)

        taken = NO_READS
        try:
            await self._storage.read(find)
            # Only now: what is not the caller's keeps what is known of it.
            taken = self._accesses.take(operation.memory_id)
        except RecollectError:
            call.refusals.clear()  # the write decides, for it may have been answered before
        reads_before, counted = taken[0], False

        def note_counted() -> None:
            nonlocal counted
            counted = True

        def settled() -> None:
            if not counted:
                self._accesses.give_back(operation.memory_id, taken)

        def write(transaction: WriteTransaction) -> records.MemoryReinforced:
            row = find(transaction)
            row.stability_s = self._fading.grown(row.stability_s, reads_before)
            row.access_count += reads_before
            self._fading.reinforce(row, operation.reinforcement_factor, call.now_us)
            self._store.reinforced(call, transaction, row)
            transaction.after_commit.append(note_counted)
            return {
                "status": "success",
                "memory_id": row.id,
                "seq": row.seq,
                "strength": strength_at(row, call.now_us),
                "stability_s": row.stability_s,
                "access_count": row.access_count,
                "fades_at": to_iso(row.fades_us),
            }

        write.settled = settled  # type: ignore[attr-defined]
        return write
