"""Memories read anew in the write that changes them: what was planned is done only to these."""

from __future__ import annotations

from recollect.orchestrator.calls import Call
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow
from recollect.orchestrator.storage.interface import Session


def as_seen(call: Call, session: Session, row: MemoryRow) -> MemoryRow | None:
    """A memory as it is now; None if it is no longer in the version that was seen.

    Its strength may have changed without a new one.
    """
    found = session.execute(SELECT_BY_NUM, (row.num,))
    if not found:
        return None
    now = MemoryRow(*found[0])
    if now.version != row.version or not now.present or not now.alive(call.now_us):
        return None
    call.require(now.namespace, now.id, "write")
    return now
