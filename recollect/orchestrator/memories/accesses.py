"""Who was read how often: noted in memory and written in batches, so no read waits for a write."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.cache.local import LocalCache
from recollect.orchestrator.memories.rows import CachedMemory, MemoryRow
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.storage.inserting import portions
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.protocol.errors import RecollectError

Noted = dict[str, tuple[int, int]]
"""How often each memory was read, and when last."""
NO_READS = (0, 0)

SELECT_FADING = """
SELECT id, stability_s, access_count, last_access_us FROM memories WHERE id IN ({marks})
"""
# Of what type the values are, a server takes from the first of them.
FIRST_ACCESS = (
    "(CAST(? AS DOUBLE PRECISION), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), ?)"
)
NEXT_ACCESS = ", (?, ?, ?, ?, ?)"
UPDATE_ACCESS = """
UPDATE memories SET stability_s = read.column1, access_count = read.column2,
    last_access_us = read.column3, fades_us = read.column4
FROM (VALUES {accesses}) AS read WHERE memories.id = read.column5
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
        count, _ = self._noted.get(memory_id, NO_READS)
        if count or len(self._noted) < self._entries_max:
            self._noted[memory_id] = (count + 1, now_us)
        else:
            self.dropped += 1

    def apply(self, row: MemoryRow) -> None:
        """Bring a row that was just read up to what was noted since it was written."""
        count, last_us = self._noted.get(row.id, NO_READS)
        if count:
            row.stability_s = self._fading.grown(row.stability_s, count)
            row.access_count += count
            row.last_access_us = max(row.last_access_us, last_us)
            row.fades_us = self._fading.fades_us(row.last_access_us, row.stability_s)

    def take(self, memory_id: str) -> tuple[int, int]:
        """The reads of a memory since the last flush and the moment of the last of them, for a
        write that counts them itself."""
        return self._noted.pop(memory_id, NO_READS)

    def give_back(self, memory_id: str, taken: tuple[int, int]) -> None:
        """Note again what was taken by a write that did not come to count it."""
        if taken != NO_READS:
            self._noted = _merged({memory_id: taken}, self._noted)

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
        for part in portions(list(noted)):
            sql = SELECT_FADING.format(marks=", ".join("?" for _ in part))
            updates: list[tuple[Any, ...]] = []
            for memory_id, stability_s, access_count, before_us in transaction.execute(sql, part):
                count, last_us = noted[memory_id]
                last_access_us = max(before_us, last_us)
                grown_s = self._fading.grown(stability_s, count)
                fades_us = self._fading.fades_us(last_access_us, grown_s)
                updates.append((grown_s, access_count + count, last_access_us, fades_us, memory_id))
            for known in portions(updates):
                transaction.execute(
                    update_sql(len(known)), [value for update in known for value in update]
                )


def update_sql(count: int) -> str:
    """The statement for a number of memories."""
    return UPDATE_ACCESS.format(accesses=FIRST_ACCESS + NEXT_ACCESS * (count - 1))


def _merged(older: Noted, newer: Noted) -> Noted:
    merged = dict(older)
    for memory_id, (count, last_us) in newer.items():
        merged[memory_id] = (merged.get(memory_id, NO_READS)[0] + count, last_us)
    return merged
