"""Who was read how often: noted in memory and written in batches, so no read waits for a write."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.strength import Fading

SELECT_FADING = "SELECT stability_s, access_count, last_access_us FROM memories WHERE num = ?"
UPDATE_ACCESS = """
UPDATE memories SET stability_s = ?, access_count = ?, last_access_us = ?, fades_us = ?
WHERE num = ?
"""


class AccessLog:
    """Reads since the last flush. Touched by the event loop's thread alone."""

    def __init__(self, storage: Storage, fading: Fading, *, entries_max: int) -> None:
        self._storage = storage
        self._fading = fading
        self._entries_max = entries_max
        self._noted: dict[int, tuple[int, int]] = {}
        self.dropped = 0
        """Accesses not counted because the buffer was full; their only effect is on strength."""

    def note(self, num: int, now_us: int) -> None:
        """Count one read."""
        count, _ = self._noted.get(num, (0, 0))
        if count or len(self._noted) < self._entries_max:
            self._noted[num] = (count + 1, now_us)
        else:
            self.dropped += 1

    async def flush(self) -> int:
        """Write what was noted; returns for how many memories."""
        noted, self._noted = self._noted, {}
        if not noted:
            return 0
        await self._storage.write(lambda transaction: self._write(transaction, noted))
        return len(noted)

    def _write(self, transaction: WriteTransaction, noted: dict[int, tuple[int, int]]) -> None:
        updates: list[tuple[Any, ...]] = []
        for num, (count, last_us) in noted.items():
            for stability_s, access_count, before_us in transaction.execute(SELECT_FADING, (num,)):
                last_access_us = max(before_us, last_us)
                grown_s = self._fading.grown(stability_s, count)
                fades_us = self._fading.fades_us(last_access_us, grown_s)
                updates.append((grown_s, access_count + count, last_access_us, fades_us, num))
        if updates:
            transaction.executemany(UPDATE_ACCESS, updates)
