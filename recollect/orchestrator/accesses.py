"""Who was read how often: noted in memory and written in batches, so no read waits for a write."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.rows import CachedMemory, MemoryRow
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.strength import Fading
from recollect.protocol.errors import RecollectError

Noted = dict[str, tuple[int, int]]
"""How often each memory was read, and when last."""

SELECT_FADING = "SELECT stability_s, access_count, last_access_us FROM memories WHERE id = ?"
UPDATE_ACCESS = """
UPDATE memories SET stability_s = ?, access_count = ?, last_access_us = ?, fades_us = ?
WHERE id = ?
"""


class AccessLog:
    """Reads since the last flush. Touched by the event loop's thread alone."""

    def __init__(
        self,
        storage: Storage,
        fading: Fading,
        cache: LocalCache[CachedMemory],
        *,
        entries_max: int,
    ) -> None:
        self._storage = storage
        self._fading = fading
        self._cache = cache
        self._entries_max = entries_max
        self._noted: Noted = {}
        self.dropped = 0
        """Accesses not counted because the buffer was full; their only effect is on strength."""

    def note(self, memory_id: str, now_us: int) -> None:
        """Count one read; a cached row moves along with what will be written at the next flush."""
        cached = self._cache.peek(memory_id)
        if cached is not None:
            self._fading.access(cached.row, now_us)
        count, _ = self._noted.get(memory_id, (0, 0))
        if count or len(self._noted) < self._entries_max:
            self._noted[memory_id] = (count + 1, now_us)
        else:
            self.dropped += 1

    def apply(self, row: MemoryRow) -> None:
        """Bring a row that was just read up to what was noted since it was written."""
        count, last_us = self._noted.get(row.id, (0, 0))
        if count:
            row.stability_s = self._fading.grown(row.stability_s, count)
            row.access_count += count
            row.last_access_us = max(row.last_access_us, last_us)
            row.fades_us = self._fading.fades_us(row.last_access_us, row.stability_s)

    def take(self, memory_id: str) -> int:
        """The reads of a memory since the last flush, for a write that counts them itself."""
        return self._noted.pop(memory_id, (0, 0))[0]

    async def flush(self) -> int:
        """Write what was noted; returns for how many memories."""
        noted, self._noted = self._noted, {}
        if not noted:
            return 0
        try:
            await self._storage.write(lambda transaction: self._write(transaction, noted))
        except RecollectError:
            self._noted = _merged(noted, self._noted)
            raise
        return len(noted)

    def _write(self, transaction: WriteTransaction, noted: Noted) -> None:
        updates: list[tuple[Any, ...]] = []
        for memory_id, (count, last_us) in noted.items():
            for stability_s, access_count, before_us in transaction.execute(
                SELECT_FADING, (memory_id,)
            ):
                last_access_us = max(before_us, last_us)
                grown_s = self._fading.grown(stability_s, count)
                fades_us = self._fading.fades_us(last_access_us, grown_s)
                updates.append((grown_s, access_count + count, last_access_us, fades_us, memory_id))
        if updates:
            transaction.executemany(UPDATE_ACCESS, updates)


def _merged(older: Noted, newer: Noted) -> Noted:
    merged = dict(older)
    for memory_id, (count, last_us) in newer.items():
        merged[memory_id] = (merged.get(memory_id, (0, 0))[0] + count, last_us)
    return merged
