"""Writing memories by namespace and key: put, update, delete and restore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from recollect.orchestrator.calls import Call, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting, MemoryPatch
from recollect.orchestrator.memories.keys import Keys, Place, no_such_key
from recollect.orchestrator.memories.memory_store import MemoryStore, check_version
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.typed_columns import check_text
from recollect.orchestrator.memories.value_texts import text_of
from recollect.orchestrator.services.changing import Changing, MemoryFunction
from recollect.orchestrator.services.deletion import DeletionService
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import AlreadyExists, InvalidArgument, VersionConflict
from recollect.protocol.operations import AddMemory, DeleteByKey, Put, RestoreByKey, UpdateByKey

REPLACED = ("memory_type", "content", "value", "metadata")
"""What every put replaces; the rest only if it is given."""
COLUMN_OF = {
    "memory_tier": "tier",
    "importance": "importance",
    "tags": "tags",
    "source": "source",
    "trust": "trust",
    "expires_at": "expires_us",
}
NEW_TIER = "medium"


class Putting:
    """The write of a value under a key, which may be free by then or not."""

    __slots__ = ("_call", "_draft", "_embedded", "_operation", "_service", "_text", "texts")

    def __init__(
        self,
        service: KeyedService,
        call: Call,
        operation: Put,
        draft: MemoryRow,
        embedded: Embedded | None,
    ) -> None:
        self._service = service
        self._call = call
        self._operation = operation
        self._draft = draft
        self._embedded = embedded
        # Put replaces all that this text is made of, so it is the same for a new memory and for
        # the next version of one.
        self._text = meaning_of(draft)
        self.texts = (self._text,) if embedded is None else ()

    def __call__(self, transaction: WriteTransaction) -> records.MemoryPut:
        embedded = self._embedded or transaction.prefetched.embedded(self._text)
        return self._service.put_draft(
            self._call, transaction, self._operation, self._draft, embedded
        )


class KeyedService:
    """One memory at a time, by a name of the caller's."""

    def __init__(
        self,
        store: MemoryStore,
        keys: Keys,
        drafting: Drafting,
        changing: Changing,
        deletion: DeletionService,
        validator: Validator,
    ) -> None:
        self._store = store
        self._keys = keys
        self._drafting = drafting
        self._changing = changing
        self._deletion = deletion
        self._validator = validator

    @writes(Put)
    def put(self, call: Call, operation: Put) -> Putting | Awaitable[Putting]:
        draft = self._draft(call, operation)
        if self._store.meanings.current.embedding.inline:
            return Putting(self, call, operation, draft, None)
        return self._put_embedded(call, operation, draft)

    async def _put_embedded(self, call: Call, operation: Put, draft: MemoryRow) -> Putting:
        embedded = await self._store.meanings.embed_one(meaning_of(draft))
        return Putting(self, call, operation, draft, embedded)

    def _draft(self, call: Call, operation: Put) -> MemoryRow:
        given = {name: getattr(operation, name) for name in given_to(operation)}
        # The value first: the text is made of what was found to be JSON.
        value = self._drafting.value(operation.value, operation.key)
        content = operation.content
        if content is None:
            content = self._text_of(operation.value, operation.key)
        adding = AddMemory(
            content,
            operation.memory_type,
            metadata=operation.metadata,
            namespace=operation.namespace,
            key=operation.key,
            **({"memory_tier": NEW_TIER} | given),
        )
        draft = self._drafting.memory(adding, call.now_us, call.author, call.session)
        draft.value = value
        draft.operation = call.operation
        return draft

    def _text_of(self, value: Any, key: str) -> str:
        cleaned = self._validator.cleaned("value", value, key)
        return text_of(cleaned, key, chars_max=self._validator.limits.content_chars_max)

    def put_draft(
        self,
        call: Call,
        transaction: WriteTransaction,
        operation: Put,
        draft: MemoryRow,
        embedded: Embedded,
    ) -> records.MemoryPut:
        """Write a draft as the next version of what has its key, or as a new memory."""
        place = (operation.namespace, operation.key)
        holder = self._keys.holder(call, transaction, place)
        alive = holder is not None and holder.alive(call.now_us)
        if holder is not None and alive:
            _check_expected(operation, place, holder)
            changes = {name: getattr(draft, name) for name in REPLACED}
            for name in given_to(operation):
                changes[COLUMN_OF[name]] = getattr(draft, COLUMN_OF[name])
            new = msgspec.structs.replace(holder, archived_us=None, **changes)
            check_text(holder, new)
            new = self._drafting.with_time_left(self._drafting.refaded(holder, new), call.now_us)
            new = self._store.supersede(call, transaction, holder, new, embedded)
        else:
            _check_expected(operation, place, None)
            # An expired holder gives the key up here.
            self._store.check_key_free(call, transaction, draft)
            self._store.insert(call, transaction, [draft], embedded)
            new = draft
        return {
            "status": "success",
            "memory_id": new.id,
            "namespace": new.namespace,
            "key": operation.key,
            "version": new.version,
            "seq": new.seq,
            "created": not alive,
            "updated_at": to_iso(new.updated_us),
        }

    @writes(UpdateByKey)
    async def update_by_key(self, call: Call, operation: UpdateByKey) -> MemoryFunction:
        place = self._keys.place(operation.namespace, operation.key)
        content = operation.content
        if operation.value is operation.metadata is content is UNSET:
            raise InvalidArgument("Name what to change: value, metadata or content.", field="value")
        if operation.value is not UNSET:
            self._drafting.value(operation.value, operation.key)
            if content is UNSET:
                content = self._text_of(operation.value, operation.key)
        patch = self._drafting.checked(
            MemoryPatch(content=content, value=operation.value, metadata=operation.metadata)
        )

        def find(session: Session) -> MemoryRow:
            return self._keys.require(call, session, place)

        return await self._changing.update(call, find, patch, operation.expected_version)

    @writes(DeleteByKey)
    def delete_by_key(
        self, call: Call, operation: DeleteByKey
    ) -> Callable[[WriteTransaction], records.MemoryDeleted]:
        place = self._keys.place(operation.namespace, operation.key)

        def find(session: Session) -> MemoryRow:
            return self._keys.require(call, session, place)

        return self._deletion.deleting(call, find, operation.expected_version, cascade=True)

    @writes(RestoreByKey)
    async def restore_by_key(self, call: Call, operation: RestoreByKey) -> MemoryFunction:
        place = self._keys.place(operation.namespace, operation.key)

        def find(session: Session) -> MemoryRow:
            holder = self._keys.holder(call, session, place)
            if operation.version is not None:
                return holder or self._keys.last(call, session, place)
            former = self._keys.deleted_last(call, session, place)
            if former is not None and holder is not None and holder.alive(call.now_us):
                raise _taken(place, holder)
            # An expired memory still has its key, and nobody can have had it since.
            found = holder or former
            if found is None:
                raise no_such_key(place)
            return found

        return await self._changing.restore(
            call, find, operation.version, operation.expected_version
        )


def given_to(operation: Put) -> list[str]:
    """Which of the options that a put may leave out were given."""
    return [name for name in COLUMN_OF if getattr(operation, name) is not UNSET]


def _check_expected(operation: Put, place: Place, holder: MemoryRow | None) -> None:
    expected = operation.expected_version
    if expected is None:
        return
    if holder is not None:
        if expected == 0:
            raise _taken(place, holder)
        check_version(holder, expected)
    elif expected != 0:
        namespace, key = place
        raise VersionConflict(
            f"The key {key!r} in {namespace} holds nothing, not version {expected}: put it with "
            "expected_version 0, or without.",
            namespace=namespace,
            key=key,
            expected_version=expected,
            actual_version=0,
        )


def _taken(place: Place, holder: MemoryRow) -> AlreadyExists:
    namespace, key = place
    return AlreadyExists(
        f"The key {key!r} in {namespace} is taken by memory {holder.id} at version "
        f"{holder.version}: change that one, or delete it first.",
        namespace=namespace,
        key=key,
        memory_id=holder.id,
        actual_version=holder.version,
    )
