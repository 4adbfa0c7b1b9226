"""Typed columns in the history: a version of a record has its columns beside its text.

So what goes back to an earlier version, because somebody restores it or because what a source wrote
is taken back, goes back whole. What is only counted, such as how often a pattern was used, and what
never changes, is no part of a version.
"""

from __future__ import annotations

from typing import Any

from recollect.orchestrator.memories.rows import MemoryRow, decode_json
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.errors import InvalidArgument

# By collection, which is also the name of its table.
VERSIONED = {
    # Which goal it serves is not brought back: by now that one may serve this.
    "goals": ("status", "priority", "progress", "due_us", "ended_us"),
    "tasks": (
        "goal_num",
        "task_type",
        "status",
        "phase",
        "phase_reason",
        "assigned_to",
        "description",
        "summary",
        "started_us",
        "ended_us",
    ),
    "decisions": ("outcome", "success", "outcome_us", "outcome_by"),
    "procedures": ("description", "steps"),
    "incidents": ("cause", "resolution", "resolved_us"),
    "patterns": (
        "pattern_type",
        "task_type",
        "successes",
        "failures",
        "helped",
        "misled",
        "confidence",
        "standing",
    ),
}
READ = {
    table: f"SELECT {', '.join(columns)} FROM {table} WHERE num = ?"
    for table, columns in VERSIONED.items()
}
WRITE = {
    table: f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE num = ?"
    for table, columns in VERSIONED.items()
}
# Records whose text stays as it was written, whoever counts how often they are used.
SETTLED = ("steps", "events", "config_changes", "executions")
SNAPSHOT = "SELECT snapshot FROM versions WHERE num = ? AND version = ?"


def columns_of(session: Session, row: MemoryRow) -> dict[str, Any] | None:
    """What a version keeps of the columns of a record; None if it has none that change."""
    if row.collection not in VERSIONED:
        return None
    found = session.execute(READ[row.collection], (row.num,))
    return dict(zip(VERSIONED[row.collection], found[0], strict=True)) if found else None


def as_in_version(transaction: WriteTransaction, row: MemoryRow, version: int) -> bool:
    """Whether the columns of a record are what they were in an earlier version of it."""
    columns = columns_of(transaction, row)
    return columns is None or columns == _kept(transaction, row, version)


def bring_back(transaction: WriteTransaction, row: MemoryRow, version: int) -> None:
    """Set the columns of a record to what they were in a version of it."""
    kept = _kept(transaction, row, version)
    if kept is not None:
        names = VERSIONED[row.collection]
        transaction.execute(WRITE[row.collection], (*(kept[name] for name in names), row.num))


def _kept(transaction: WriteTransaction, row: MemoryRow, version: int) -> dict[str, Any] | None:
    found = transaction.execute(SNAPSHOT, (row.num, version))
    return columns_in(found[0][0]) if found else None


def columns_in(snapshot: str) -> dict[str, Any] | None:
    """The columns that a version has kept."""
    kept: dict[str, Any] | None = decode_json(snapshot).get("columns")
    return kept


def check_text(old: MemoryRow, new: MemoryRow) -> None:
    """Refuse another text or value for a record, which says with its columns what it is."""
    if old.collection not in VERSIONED and old.collection not in SETTLED:
        return
    for field in ("content", "value"):
        if getattr(old, field) != getattr(new, field):
            raise InvalidArgument(
                f"Memory {old.id} is one of {old.collection}, and its {field} follows from what it "
                "is: change it by the operations for these.",
                field=field,
                memory_id=old.id,
            )
