"""A run of consolidation: write, index, see that it is found, and only then archive the sources.

Every step is a transaction of its own, so that nothing else waits for long. Whatever breaks a run
off, a full disk or a kill, it is taken back as a whole: at once, or by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from recollect.orchestrator.access.rechecking import RecheckedWrites
from recollect.orchestrator.calls import Call
from recollect.orchestrator.clock import Clock
from recollect.orchestrator.consolidation import runs
from recollect.orchestrator.consolidation.as_seen import as_seen
from recollect.orchestrator.consolidation.lineage import DERIVED_FROM, REPLACES, link
from recollect.orchestrator.consolidation.runs import Item
from recollect.orchestrator.consolidation.settling import CHANGED, UNFOUND, Settlement
from recollect.orchestrator.embedding.meaning import Embedded
from recollect.orchestrator.memories.memory_store import MemoryStore, as_deleted
from recollect.orchestrator.memories.memory_texts import meaning_of
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.search.lexical import LexicalIndex
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction

FOUND_BY_CHARS = 400

MARK_UNDONE = "UPDATE run_items SET undone = 1 WHERE run_id = ? AND position = ?"


class Outcome(msgspec.Struct, frozen=True):
    """What became of one conflict."""

    settlement: Settlement
    kept: MemoryRow | None = None
    archived: tuple[MemoryRow, ...] = ()
    skipped: str | None = None


class Progress:
    """A run under way: which it is, how often it was gone on with, and how many items it has."""

    def __init__(self, run_id: str, resumed: int = 0, position: int = 0) -> None:
        self.run_id = run_id
        self.resumed = resumed
        self.position = position

    def next(self) -> int:
        self.position += 1
        return self.position


class Performing:
    """Carries settlements out, one after another."""

    def __init__(
        self,
        storage: Storage,
        writes: RecheckedWrites,
        store: MemoryStore,
        lexical: LexicalIndex,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._store = store
        self._lexical = lexical
        self._clock = clock

    async def settle(
        self, call: Call, progress: Progress, settlement: Settlement, draft: MemoryRow | None
    ) -> Outcome:
        """Settle one conflict, by a draft that is to be written or by what is there."""
        if settlement.skipped is not None:
            return Outcome(settlement, skipped=settlement.skipped)
        kept = settlement.kept
        if draft is not None:
            embedded = await self._store.meanings.embed_one(meaning_of(draft))
            written = await self._writes.write(
                call, partial(self._write, call, progress, settlement, draft, embedded)
            )
            if written is None:
                return Outcome(settlement, skipped=CHANGED)
            kept = written
        assert kept is not None
        failpoint("consolidation_written")
        found = await self._is_found(kept)
        archived = await self._writes.write(
            call,
            partial(self._archive, call, progress, settlement, kept, draft is not None, found),
        )
        failpoint("consolidation_archived")
        if archived is None:
            return Outcome(settlement, skipped=CHANGED if found else UNFOUND)
        return Outcome(settlement, kept, archived)

    def _write(
        self,
        call: Call,
        progress: Progress,
        settlement: Settlement,
        draft: MemoryRow,
        embedded: Embedded,
        transaction: WriteTransaction,
    ) -> MemoryRow | None:
        """Write what takes the place of the sources; None if one of them has changed."""
        runs.beat(transaction, progress.run_id, self._clock.now_us())
        if _as_seen(call, transaction, settlement.sources) is None:
            return None
        self._store.insert(call, transaction, [draft], embedded)
        link(call, transaction, draft.num, DERIVED_FROM, [row.num for row in settlement.sources])
        item = Item(progress.next(), draft.num, "created", None, draft.version)
        runs.enter(transaction, progress.run_id, [item])
        return draft

    async def _is_found(self, row: MemoryRow) -> bool:
        """Whether a search finds a memory: by its words, or by its meaning."""
        meaning = self._store.meanings.current

        def read(session: Session) -> bool:
            words = row.content[:FOUND_BY_CHARS]
            if row.num in self._lexical.score(session, words, [row.num]):
                return True
            return row.num in self._store.vectors.of(session, meaning, [row.num])

        return await self._storage.read(read)

    def _archive(
        self,
        call: Call,
        progress: Progress,
        settlement: Settlement,
        kept: MemoryRow,
        written: bool,
        found: bool,
        transaction: WriteTransaction,
    ) -> tuple[MemoryRow, ...] | None:
        """Archive the sources; None if that cannot be, and then what was written is gone again."""
        runs.beat(transaction, progress.run_id, self._clock.now_us())
        fresh = _as_seen(call, transaction, (kept, *settlement.archived))
        if not found or fresh is None:
            if written:
                self._take_back(call, progress, kept, transaction)
            return None
        items = []
        for row in fresh[1:]:
            archived_us = max(call.now_us, row.updated_us + 1)
            new = msgspec.structs.replace(row, archived_us=archived_us)
            new = self._store.supersede(call, transaction, row, new)
            items.append(Item(progress.next(), row.num, "archived", row.version, new.version))
            if not written:
                link(call, transaction, kept.num, REPLACES, [row.num], archived_us)
        runs.enter(transaction, progress.run_id, items)
        return settlement.archived

    def _take_back(
        self, call: Call, progress: Progress, kept: MemoryRow, transaction: WriteTransaction
    ) -> None:
        found = transaction.execute(SELECT_BY_NUM, (kept.num,))
        # If somebody has changed it already, it is theirs.
        if found and (row := MemoryRow(*found[0])).version == kept.version:
            self._store.supersede(call, transaction, row, as_deleted(call, row))
            transaction.execute(MARK_UNDONE, (progress.run_id, progress.position))


def _as_seen(call: Call, session: Session, rows: Sequence[MemoryRow]) -> list[MemoryRow] | None:
    """Memories read anew; None if one of them is no longer in the version that was seen."""
    fresh = []
    for row in rows:
        now = as_seen(call, session, row)
        if now is None:
            return None
        fresh.append(now)
    return fresh
