"""Many memories in one call, one transaction and one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import MemoryStore, no_such_memory
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import MemoryRow, record_of
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.trust.echoes import Echoes, known_already, together
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import AlreadyExists, RecollectError
from recollect.protocol.operations import BatchAddMemories, BatchGetMemories

INLINE_ITEMS_MAX = 16  # beyond this, checking the items would hold up the event loop


class Batch:
    """The items of one batch on their way: drafts of the good ones, errors of the bad ones."""

    def __init__(self, size: int) -> None:
        self.drafts: dict[int, MemoryRow] = {}
        self.errors: dict[int, RecollectError] = {}
        self.size = size

    def texts(self) -> list[str]:
        return [meaning_of(draft) for draft in self.drafts.values()]


class BatchService:
    """Batches of adds and gets."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        drafting: Drafting,
        validator: Validator,
        echoes: Echoes | None,
    ) -> None:
        self._storage = storage
        self._store = store
        self._drafting = drafting
        self._validator = validator
        self._echoes = echoes

    @writes(BatchAddMemories)
    async def batch_add_memories(
        self, call: Call, operation: BatchAddMemories
    ) -> Callable[[WriteTransaction], records.BatchAdded]:
        self._validator.at_most("batch_items_max", "memories", len(operation.memories), "items")
        if len(operation.memories) <= INLINE_ITEMS_MAX:
            batch, ready = self._prepare(call, operation)
        else:
            loop = asyncio.get_running_loop()
            batch, ready = await loop.run_in_executor(None, self._prepare, call, operation)
        likely = await self._likely(call, batch)
        places = list(batch.drafts)
        embedded = ready or await self._store.meanings.embed(batch.texts())

        def write(transaction: WriteTransaction) -> records.BatchAdded:
            refused = self._check_links(call, transaction, batch, operation.atomic)
            good = batch.drafts.keys() - refused.keys()
            known = {
                place: row
                for place, ids in likely.items()
                if place in good
                and (row := known_already(call, transaction, batch.drafts[place], ids)) is not None
            }
            new = good - known.keys()
            chosen = [at for at, place in enumerate(places) if place in new]
            kept = embedded if len(chosen) == len(places) else embedded.chosen(chosen)
            drafts = [batch.drafts[places[at]] for at in chosen]
            if drafts:
                self._store.insert(call, transaction, drafts, kept)
            return _added(batch, batch.errors | refused, drafts, known)

        return write

    async def _likely(self, call: Call, batch: Batch) -> dict[int, tuple[str, ...]]:
        """By their places, the items that may only repeat what the agent was served."""
        echoes = self._echoes
        if echoes is None:
            return {}
        served, found = echoes.likely(call), dict[int, tuple[str, ...]]()
        if served is not None:
            found = {place: served.of(draft) for place, draft in batch.drafts.items()}
        if echoes.shared:
            elsewhere = await echoes.elsewhere(call, list(batch.drafts.values()))
            for place, ids in zip(batch.drafts, elsewhere, strict=True):
                found[place] = together(found.get(place, ()), ids)
        return {place: ids for place, ids in found.items() if ids}

    def _prepare(self, call: Call, operation: BatchAddMemories) -> tuple[Batch, Embedded | None]:
        """The batch checked and, by an embedder that needs no other thread, embedded."""
        batch = self._draft(call, operation)
        meanings = self._store.meanings
        if meanings.current.embedding.inline:
            return batch, meanings.embed_now(batch.texts())
        return batch, None

    def _draft(self, call: Call, operation: BatchAddMemories) -> Batch:
        batch = Batch(len(operation.memories))
        for place, item in enumerate(operation.memories):
            try:
                add = self._drafting.batch_item(item, operation.namespace)
                batch.drafts[place] = self._drafting.memory(
                    add, call.now_us, call.author, call.session
                )
            except RecollectError as error:
                if operation.atomic:
                    raise _in_place(error, place) from None
                batch.errors[place] = error
        return batch

    def _check_links(
        self, call: Call, transaction: WriteTransaction, batch: Batch, atomic: bool
    ) -> dict[int, RecollectError]:
        """Refuse items whose parent is missing or whose key is taken, by their places.

        The batch stays as it was: it may be written again, where they are missing no more.
        """
        refused: dict[int, RecollectError] = {}
        parents: dict[str, RecollectError | None] = {}
        keys: set[tuple[str, str]] = set()
        for place, draft in batch.drafts.items():
            try:
                call.require(draft.namespace, draft.key or "", "write")
                if draft.parent_id is not None:
                    self._check_parent(call, transaction, draft, parents)
                if draft.key is not None:
                    self._store.check_key_free(call, transaction, draft)
                    if (draft.namespace, draft.key) in keys:
                        raise _duplicate_key(draft)
                    keys.add((draft.namespace, draft.key))
            except RecollectError as error:
                if atomic:
                    raise _in_place(error, place) from None
                refused[place] = error
        return refused

    def _check_parent(
        self,
        call: Call,
        session: Session,
        draft: MemoryRow,
        known: dict[str, RecollectError | None],
    ) -> None:
        assert draft.parent_id is not None
        if draft.parent_id not in known:
            try:
                self._store.check_parent(call, session, draft, draft.parent_id)
                known[draft.parent_id] = None
            except RecollectError as error:
                known[draft.parent_id] = error
        if (error_before := known[draft.parent_id]) is not None:
            raise error_before

    @reads(BatchGetMemories)
    async def batch_get_memories(
        self, call: Call, operation: BatchGetMemories
    ) -> records.BatchFetched:
        self._validator.at_most("batch_items_max", "memory_ids", len(operation.memory_ids), "items")

        def read(session: Session) -> records.BatchFetched:
            results: list[records.BatchItem] = []
            for memory_id in operation.memory_ids:
                row = self._store.find(call, session, memory_id)
                if row is None or not row.alive(call.now_us):
                    error = no_such_memory(memory_id)
                    results.append(
                        {"status": "error", "memory_id": memory_id, "error": {**error.body()}}
                    )
                else:
                    results.append({"status": "success", "memory": record_of(row, call.now_us)})
            found = [item["memory"] for item in results if "memory" in item]
            return {
                "status": "success" if len(found) == len(results) else "partial",
                "results": results,
                "memories": found,
                "missing_ids": [item["memory_id"] for item in results if "error" in item],
                "count": len(found),
            }

        return await self._storage.read(read)


def _added(
    batch: Batch,
    errors: dict[int, RecollectError],
    drafts: list[MemoryRow],
    known: dict[int, MemoryRow],
) -> records.BatchAdded:
    results: list[records.BatchItem] = []
    ids: list[str | None] = []
    for place in range(batch.size):
        if (echoed := known.get(place)) is not None:
            item: Any = {
                "status": "success",
                "memory_id": echoed.id,
                "version": echoed.version,
                "seq": echoed.seq,
                "echo_of": echoed.id,
            }
            ids.append(echoed.id)
        elif (error := errors.get(place)) is not None:
            item = error.reply()
            ids.append(None)
        else:
            draft = batch.drafts[place]
            item = {
                "status": "success",
                "memory_id": draft.id,
                "version": 1,
                "seq": draft.seq,
            }
            ids.append(draft.id)
        results.append(item)
    failed = len(errors)
    return {
        "status": "partial" if failed else "success",
        "results": results,
        "memory_ids": ids,
        "stored": len(drafts),
        "failed": failed,
        "seq": max((row.seq for row in (*drafts, *known.values())), default=0),
    }


def _in_place(error: RecollectError, place: int) -> RecollectError:
    return type(error)(f"memories[{place}]: {error.message}", **error.details, item=place)


def _duplicate_key(draft: MemoryRow) -> RecollectError:
    return AlreadyExists(f"The key {draft.key!r} comes twice in this batch.", key=draft.key)
