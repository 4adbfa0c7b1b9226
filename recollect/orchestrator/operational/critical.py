"""Critical events: memories of the collection `events`, on disk before they are acknowledged."""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.operational.interface import Event
from recollect.orchestrator.rows import MemoryRow
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.value_texts import text_of

COLLECTION = "events"
MEMORY_TYPE = "event"
IMPORTANCE = 0.7
INSERT = Insert("events", ("num", "category", "data", "task_id"))
# The last ones by number are the last that were committed.
LATEST = """
SELECT m.id, m.created_us, m.namespace, e.category, e.data, m.created_by, e.task_id, m.session_id
FROM events e JOIN memories m ON m.num = e.num
WHERE m.deleted_us IS NULL AND (m.expires_us IS NULL OR m.expires_us > ?)
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


def latest(session: Session, now_us: int, count: int) -> list[Event]:
    """The last critical events that are still there, the oldest first."""
    found = [
        Event(
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
        for memory_id, at_us, namespace, category, data, author, task_id, session_id in (
            session.execute(LATEST, (now_us, count))
        )
    ]
    found.reverse()
    return found
