"""Taking a run back: every memory as it was before, but for those that were changed since.

It goes from the last item to the first in bounded transactions, each of which notes how far it is,
so that it can be broken off and gone on with at any point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import structlog

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.lineage import UNLINK
from recollect.orchestrator.consolidation.parents import free_of_cycle, hanging
from recollect.orchestrator.consolidation.runs import Item, Run
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories import typed_columns
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.memory_store import VERSION_BY_NUMBER, MemoryStore, as_deleted
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, VERSIONED, MemoryRow, with_snapshot
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.protocol.errors import AlreadyExists

log = structlog.get_logger()

ITEMS_AT_ONCE = 50
SKIPPED_TOLD_MAX = 1_000
ARCHIVED = "archived"
CREATED = "created"
UNDONE, SKIPPED = 1, 2
MOVED_FROM = {"to_working": "short", "to_longterm": "medium", "summarised": "medium"}
"""The tier that a memory came from, by what a migration did to it."""
BOOKKEEPING = frozenset({"seq", "version", "updated_by", "updated_us", "operation"})
"""What every change moves."""

NEXT = """
SELECT position, num, action, version_before, version_after FROM run_items
WHERE run_id = ? AND undone = 0 ORDER BY position DESC LIMIT ?
"""
MARK = "UPDATE run_items SET undone = ? WHERE run_id = ? AND position = ?"
COUNTS = """
SELECT coalesce(sum(CASE WHEN undone = 1 AND action <> 'created' THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN undone = 1 AND action = 'created' THEN 1 ELSE 0 END), 0)
FROM run_items WHERE run_id = ?
"""
SKIPPED_IDS = """
SELECT DISTINCT m.id FROM run_items i JOIN memories m ON m.num = i.num
WHERE i.run_id = ? AND i.undone = 2 ORDER BY m.id LIMIT ?
"""


class Undone(msgspec.Struct, frozen=True):
    """What taking a run back came to."""

    restored: int
    removed: int
    skipped: list[str]
    seq: int


class Undoing:
    """Takes runs back."""

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

    async def take_back(self, call: Call, run: Run, failed: str | None = None) -> Undone:
        """Take back all that a run did. `failed` says why, if not because somebody asked for it.

        Who asks must still be allowed to when it begins. From then on it is finished, whatever they
        may, since half of it would be neither the one nor the other; and so is what failed.
        """
        claim = partial(self._claim, call, run, failed)
        if failed is None:
            run = await self._writes.write(call, claim)
        else:
            run = await self._storage.write(claim)
        while True:
            items = await self._storage.read(partial(_next_items, run))
            if not items:
                break
            texts = await self._storage.read(partial(self._texts, items))
            embedded = await self._store.meanings.embed(list(texts.values())) if texts else None
            places = {position: place for place, position in enumerate(texts)}
            await self._storage.write(partial(self._undo_items, call, run, items, embedded, places))
            failpoint("undoing")
        after: int | None = 0
        while after is not None:
            after = await self._storage.write(partial(self._detach, call, run, after))
        return await self._storage.write(partial(self._finish, call, run))

    def _claim(
        self, call: Call, run: Run, failed: str | None, transaction: WriteTransaction
    ) -> Run:
        """From now on the run is being undone, and does nothing else any more."""
        if run.status == runs.UNDOING:
            return run
        report = run.told if failed is None else run.told | {"failed": failed}
        now_us = self._clock.now_us()
        moved = runs.move(
            call, transaction, run, runs.UNDOING, report, now_us=now_us, ended_us=run.ended_us
        )
        [row] = transaction.execute(runs.BY_ID, (run.id,))
        if moved is None and Run(*row).status != runs.UNDOING:
            raise runs.busy(call, run)
        return Run(*row)

    def _texts(self, items: Sequence[Item], session: Session) -> dict[int, str]:
        """The texts of what will be there again, to be embedded, by the position of the item."""
        texts: dict[int, str] = {}
        for item in items:
            found = session.execute(SELECT_BY_NUM, (item.num,))
            if not found or item.action == CREATED:
                continue
            target = _target(session, MemoryRow(*found[0]), item)
            if target is not None and target.present:
                texts[item.position] = meaning_of(target)
        return texts

    def _undo_items(
        self,
        call: Call,
        run: Run,
        items: Sequence[Item],
        embedded: Embedded | None,
        places: dict[int, int],
        transaction: WriteTransaction,
    ) -> None:
        runs.beat(transaction, run.id, self._clock.now_us(), runs.UNDOING, run.resumed)
        for item in items:
            place = places.get(item.position)
            known = None if embedded is None or place is None else embedded.chosen([place])
            done = self._undo_item(call, item, known, transaction)
            transaction.execute(MARK, (UNDONE if done else SKIPPED, run.id, item.position))

    def _undo_item(
        self,
        call: Call,
        item: Item,
        embedded: Embedded | None,
        transaction: WriteTransaction,
    ) -> bool:
        found = transaction.execute(SELECT_BY_NUM, (item.num,))
        if not found:
            return False  # it was purged
        row = MemoryRow(*found[0])
        if not _as_left(transaction, row, item):
            return False
        target = _target(transaction, row, item)
        if target is None:
            return False
        if item.action == CREATED:
            self._store.supersede(call, transaction, row, as_deleted(call, row))
            return True
        if row.deleted_us is not None and target.deleted_us is None:
            try:
                self._store.check_key_free(call, transaction, target)
            except AlreadyExists:
                return False
        target = self._drafting.refaded(row, free_of_cycle(transaction, row, target))
        # Or what decay moved would be moved again at its next run.
        target = self._drafting.with_time_left(target, call.now_us)
        self._store.supersede(call, transaction, row, target, embedded)
        if target.present and item.action == ARCHIVED:
            transaction.execute(UNLINK, (row.num, row.archived_us))
        return True

    def _detach(
        self, call: Call, run: Run, after: int, transaction: WriteTransaction
    ) -> int | None:
        """Let what is back hang below nothing, if its parent is not there any more."""
        runs.beat(transaction, run.id, self._clock.now_us(), runs.UNDOING, run.resumed)
        rows, following = hanging(transaction, run.id, after, UNDONE)
        for row in rows.values():
            free = msgspec.structs.replace(row, parent_id=None)
            self._store.supersede(call, transaction, row, free)
        return following

    def _finish(self, call: Call, run: Run, transaction: WriteTransaction) -> Undone:
        [(restored, removed)] = transaction.execute(COUNTS, (run.id,))
        skipped = [i for (i,) in transaction.execute(SKIPPED_IDS, (run.id, SKIPPED_TOLD_MAX))]
        report = run.told
        status = runs.FAILED if "failed" in report else runs.UNDONE
        now_us = self._clock.now_us()
        undone = {"restored": restored, "removed": removed, "skipped": skipped}
        seq = transaction.last_seq() + 1
        moved = runs.move(
            call,
            transaction,
            run,
            status,
            report | {"undone": undone | {"seq": seq}},
            now_us=now_us,
            ended_us=run.ended_us or now_us,
        )
        if moved is None:
            return undone_of(Run(*transaction.execute(runs.BY_ID, (run.id,))[0]))
        return Undone(restored, removed, skipped, moved)


def undone_of(run: Run) -> Undone:
    """What taking back a run came to, when that was done before."""
    told = run.told.get("undone", {})
    return Undone(
        told.get("restored", 0), told.get("removed", 0), told.get("skipped", []), told.get("seq", 0)
    )


def _next_items(run: Run, session: Session) -> list[Item]:
    return [Item(*row) for row in session.execute(NEXT, (run.id, ITEMS_AT_ONCE))]


def _as_left(transaction: WriteTransaction, row: MemoryRow, item: Item) -> bool:
    """Whether a memory is as an item left it; other runs may have come, if they were undone."""
    if row.version == item.version_after:
        return True
    found = transaction.execute(VERSION_BY_NUMBER, (row.num, item.version_after))
    if not found or _state(with_snapshot(row, found[0][0])) != _state(row):
        return False
    return typed_columns.as_in_version(transaction, row, item.version_after)


def _state(row: MemoryRow) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in VERSIONED if name not in BOOKKEEPING)


def _target(session: Session, row: MemoryRow, item: Item) -> MemoryRow | None:
    """The memory as it was before an item; None if that is no longer known."""
    if item.version_before is None:
        return row
    found = session.execute(VERSION_BY_NUMBER, (row.num, item.version_before))
    if found:
        return with_snapshot(row, found[0][0])
    # The version was squashed; what the run did beside the text can be taken back all the same.
    if item.action == ARCHIVED:
        return msgspec.structs.replace(row, archived_us=None)
    if item.action in MOVED_FROM:
        return msgspec.structs.replace(row, archived_us=None, tier=MOVED_FROM[item.action])
    if item.action == "deleted":
        return msgspec.structs.replace(row, deleted_us=None)
    return None
