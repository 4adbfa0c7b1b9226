"""How often executions were shown to somebody: noted in memory and written in batches.

A search is a read, and no read waits for a write. What is lost by a crash is a count.
"""

from __future__ import annotations

from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.protocol.errors import RecollectError

ENTRIES_MAX = 10_000
COUNT = "UPDATE executions SET reuse_count = reuse_count + ? WHERE num = ?"


class ReuseLog:
    """Reuses since the last flush. Touched by the event loop's thread alone."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._noted: dict[int, int] = {}

    def note(self, num: int) -> None:
        """Count one execution as shown; beyond the bound, only those that already are counted."""
        if num in self._noted or len(self._noted) < ENTRIES_MAX:
            self._noted[num] = self._noted.get(num, 0) + 1

    def pending(self, num: int) -> int:
        """What was noted of an execution and is not written yet."""
        return self._noted.get(num, 0)

    async def flush(self) -> int:
        """Write what was noted; returns for how many executions."""
        noted, self._noted = self._noted, {}
        if not noted:
            return 0

        def write(transaction: WriteTransaction) -> None:
            transaction.executemany(COUNT, [(count, num) for num, count in noted.items()])

        try:
            await self._storage.write(write)
        except RecollectError:
            for num, count in noted.items():
                self._noted[num] = self._noted.get(num, 0) + count
            raise
        return len(noted)
