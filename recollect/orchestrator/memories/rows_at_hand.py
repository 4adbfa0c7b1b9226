"""Rows by their number, from the cache where they are in it. For the event loop alone."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.memories.rows import CachedMemory, lasting_record
from recollect.orchestrator.storage.interface import Session

IDS_KNOWN_MAX = 100_000
CACHED_CHARS_MAX = 65_536  # a larger memory is read again rather than kept


class RowsAtHand:
    """Looks into the cache of rows, and fills it."""

    def __init__(self, store: MemoryStore, accesses: AccessLog) -> None:
        self._store = store
        self._accesses = accesses
        # A memory has one number and one id for as long as it is. Emptied when it grows too large.
        self._id_of: dict[int, str] = {}

    def of(self, session: Session, nums: Sequence[int]) -> dict[int, CachedMemory]:
        """The memories with these numbers, as far as there are any."""
        cache = self._store.cache
        found: dict[int, CachedMemory] = {}
        missing: list[tuple[int, None]] = []
        id_of, at_hand = self._id_of.get, cache.get
        for num in nums:
            memory_id = id_of(num)
            cached = None if memory_id is None else at_hand(memory_id)
            if cached is None:
                missing.append((num, None))
            else:
                found[num] = cached
        if missing:
            ticket = cache.ticket()
            for row, _ in self._store.rows_of(session, missing):
                self._accesses.apply(row)
                cached = found[row.num] = CachedMemory(row, lasting_record(row))
                if len(row.content) + len(row.metadata) + len(row.value or "") <= CACHED_CHARS_MAX:
                    cache.keep(row.id, cached, ticket, cached.weight)
                    self._learn(row.num, row.id)
        return found

    def _learn(self, num: int, memory_id: str) -> None:
        if len(self._id_of) >= IDS_KNOWN_MAX:
            self._id_of.clear()
        self._id_of[num] = memory_id
