"""Who was read how often: noted in memory and written in batches, so no read waits for a write."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.strength import Fading

SELECT_FADING = "SELECT stability_s, access_count, last_access_us FROM memories WHERE id = ?"
UPDATE_ACCESS = """
UPDATE memories SET stability_s = ?, access_count = ?, last_access_us = ?, fades_us = ?
WHERE id = ?
"""


class AccessLog:
    """Reads since the last flush. Touched by the event loop's thread alone."""

    def __init__(self, storage: Storage, fading: Fading, *, entries_max: int) -> None:
        self._storage = storage
        self._fading = fading
        self._entries_max = entries_max
        self._noted: dict[str, tuple[int, int]] = {}
        self.dropped = 0
        """Accesses not counted because the buffer was full; their only effect is on strength."""

    def note(self, memory_id: str, now_us: int) -> None:
        """Count one read."""
        count, _ = self._noted.get(memory_id, (0, 0))
        if count or len(self._noted) < self._entries_max:
            self._noted[memory_id] = (count + 1, now_us)
        else:
            self.dropped += 1

    def take(self, memory_id: str) -> int:
        """The reads of a memory since the last flush, for a write that counts them itself."""
        return self._noted.pop(memory_id, (0, 0))[0]

    async def flush(self) -> int:
        """Write what was noted; returns for how many memories."""
        noted, self._noted = self._noted, {}
        if not noted:
            return 0
        await self._storage.write(lambda transaction: self._write(transaction, noted))
        return len(noted)

    def _write(self, transaction: WriteTransaction, noted: dict[str, tuple[int, int]]) -> None:
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
