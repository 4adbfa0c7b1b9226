"""Taking back what a source wrote, a bounded number of memories at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.forgetting import Action, Fate
from recollect.orchestrator.consolidation.parents import DETACHED, free_of_cycle, hanging
from recollect.orchestrator.consolidation.performing import Progress
from recollect.orchestrator.consolidation.runs import Item
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import VERSION_BY_NUMBER, MemoryStore, as_deleted
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow, with_snapshot
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol.errors import AlreadyExists

FATES_AT_ONCE = 50
# What a derived memory suffers is the same, and is counted apart.
ENTERED: dict[Action, str] = {"derived": "deleted"}


class TakingBack:
    """Carries out what was found."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        store: MemoryStore,
        drafting: Drafting,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._store = store
        self._drafting = drafting
        self._clock = clock

    async def carry_out(
        self, call: Call, progress: Progress, fates: Sequence[Fate]
    ) -> list[tuple[Fate, str]]:
        """What was done, with the id of each memory; what has changed meanwhile is left."""
        done: list[tuple[Fate, str]] = []
        for start in range(0, len(fates), FATES_AT_ONCE):
            part = fates[start : start + FATES_AT_ONCE]
            texts = await self._storage.read(partial(_texts, part))
            embedded = await self._store.meanings.embed(list(texts.values())) if texts else None
            places = {num: place for place, num in enumerate(texts)}
            done += await self._writes.write(
                call, partial(self._apply_all, call, progress, part, embedded, places)
            )
            failpoint("forgetting")
        return done

    async def detach(self, call: Call, progress: Progress) -> None:
        """Let what was put back hang below nothing, if its parent is not there any more."""
        after: int | None = 0
        while after is not None:
            after = await self._writes.write(call, partial(self._detach, call, progress, after))

    def _detach(
        self, call: Call, progress: Progress, after: int, transaction: WriteTransaction
    ) -> int | None:
        runs.beat(transaction, progress.run_id, self._clock.now_us())
        rows, following = hanging(transaction, progress.run_id, after, 0)
        items: list[Item] = []
        for row in rows.values():
            free = msgspec.structs.replace(row, parent_id=None)
            new = self._store.supersede(call, transaction, row, free)
            items.append(Item(progress.next(), row.num, DETACHED, row.version, new.version))
        runs.enter(transaction, progress.run_id, items)
        return following

    def _apply_all(
        self,
        call: Call,
        progress: Progress,
        fates: Sequence[Fate],
        embedded: Embedded | None,
        places: dict[int, int],
        transaction: WriteTransaction,
    ) -> list[tuple[Fate, str]]:
        runs.beat(transaction, progress.run_id, self._clock.now_us())
        done: list[tuple[Fate, str]] = []
        items: list[Item] = []
        for fate in fates:
            place = places.get(fate.num)
            known = None if embedded is None or place is None else embedded.chosen([place])
            row = _seen(transaction, fate)
            new = None if row is None else self._apply(call, transaction, fate, row, known)
            if row is not None and new is not None:
                action = ENTERED.get(fate.action, fate.action)
                items.append(Item(progress.next(), row.num, action, row.version, new.version))
                done.append((fate, row.id))
        runs.enter(transaction, progress.run_id, items)
        return done

    def _apply(
        self,
        call: Call,
        transaction: WriteTransaction,
        fate: Fate,
        row: MemoryRow,
        embedded: Embedded | None,
    ) -> MemoryRow | None:
        call.require(row.namespace, row.id, "write")
        target = _target(transaction, call, fate, row)
        if target is None:
            return None
        if row.deleted_us is not None and target.deleted_us is None:
            try:
                self._store.check_key_free(call, transaction, target)
            except AlreadyExists:
                return None
        target = self._drafting.refaded(row, free_of_cycle(transaction, row, target))
        # Or what decay archived would be archived again at its next run.
        target = self._drafting.with_time_left(target, call.now_us)
        return self._store.supersede(call, transaction, row, target, embedded)


def _seen(session: Session, fate: Fate) -> MemoryRow | None:
    """The memory, if it still is in the version in which its fate was decided."""
    found = session.execute(SELECT_BY_NUM, (fate.num,))
    if not found or (row := MemoryRow(*found[0])).version != fate.version:
        return None
    return row


def _target(session: Session, call: Call, fate: Fate, row: MemoryRow) -> MemoryRow | None:
    if fate.action == "detached":
        return msgspec.structs.replace(row, parent_id=None)
    if fate.target is None:
        return as_deleted(call, row)
    found = session.execute(VERSION_BY_NUMBER, (row.num, fate.target))
    return with_snapshot(row, found[0][0]) if found else None


def _texts(fates: Sequence[Fate], session: Session) -> dict[int, str]:
    """The texts of what will say something else than now, to be embedded, by number."""
    texts: dict[int, str] = {}
    for fate in fates:
        row = None if fate.target is None else _seen(session, fate)
        if row is not None:
            found = session.execute(VERSION_BY_NUMBER, (row.num, fate.target))
            if found and (target := with_snapshot(row, found[0][0])).present:
                texts[fate.num] = meaning_of(target)
    return texts
