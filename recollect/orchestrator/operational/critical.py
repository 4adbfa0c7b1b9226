"""Critical events: memories of the collection `events`, on disk before they are acknowledged."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.value_texts import text_of
from recollect.orchestrator.operational.interface import Event, bytes_of
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction

MEMORY_TYPE = "event"
IMPORTANCE = 0.7
READ_AT_ONCE = 500
NUM_MAX = (1 << 63) - 1
INSERT = Insert("events", ("num", "category", "data", "task_id"))
# The last ones by number are the last that were committed.
LATEST = """
SELECT m.id, m.created_us, m.namespace, e.category, e.data, m.created_by, e.task_id, m.session_id,
       e.num
FROM events e JOIN memories m ON m.num = e.num
WHERE e.num < ? AND m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)
ORDER BY e.num DESC LIMIT ?
"""


def content_of(category: str, data: Any, chars_max: int) -> str:
    """An event as text that can be read and found."""
    if data is None:
        return category
    said = text_of(data, category, chars_max=chars_max)
    # A bare number comes with the name of its category already.
    return said if said.startswith(category) else f"{category}: {said}"[:chars_max]


def insert(transaction: WriteTransaction, row: MemoryRow, event: Event) -> None:
    """Write what is typed of an event, beside its memory."""
    transaction.insert(INSERT, [(row.num, event.category, event.data, event.task_id)])


def latest(session: Session, now_us: int, count: int, bytes_max: int) -> list[Event]:
    """The last critical events that are still there, the oldest first; no more than have room."""
    found: list[Event] = []
    size, before = 0, NUM_MAX
    while size <= bytes_max and len(found) < count:
        some = session.execute(LATEST, (before, now_us, min(READ_AT_ONCE, count - len(found))))
        if not some:
            break
        for memory_id, at_us, namespace, category, data, author, task_id, session_id, num in some:
            event = Event(
                id=memory_id,
                at_us=at_us,
                namespace=namespace,
                category=category,
                data=data,
                critical=True,
                author=author or "",
                task_id=task_id,
                session_id=session_id,
            )
            found.append(event)
            size += bytes_of(data)
            before = num
    found.reverse()
    return found
