"""Critical events are memories: one that was deleted or purged is no event any more."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.storage.interface import Session, Storage

IDS_AT_ONCE = 500
ALIVE = """
SELECT id FROM memories
WHERE id IN ({marks}) AND deleted_us IS NULL AND (expires_us IS NULL OR expires_us > ?)
"""


class Living:
    """Knows which critical events still have their memory."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def gone(self, now_us: int, event_ids: Sequence[str]) -> set[str]:
        """Those of some critical events whose memories are not there any more."""
        if not event_ids:
            return set()

        def read(session: Session) -> set[str]:
            found: set[str] = set()
            for start in range(0, len(event_ids), IDS_AT_ONCE):
                some = event_ids[start : start + IDS_AT_ONCE]
                sql = ALIVE.format(marks=", ".join("?" for _ in some))
                found.update(row[0] for row in session.execute(sql, (*some, now_us)))
            return found

        return set(event_ids) - await self._storage.read(read)
