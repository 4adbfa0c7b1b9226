"""What a store knows of itself, as named texts."""

from __future__ import annotations

from recollect.orchestrator.storage.interface import Session, WriteTransaction

STORE_ID = "store_id"
"""What tells a store from others that share something in the same place."""

GET = "SELECT value FROM properties WHERE name = ?"
SET = """
INSERT INTO properties (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
REMOVE = "DELETE FROM properties WHERE name = ?"


def get_property(session: Session, name: str) -> str | None:
    """The value under a name."""
    found = session.execute(GET, (name,))
    return found[0][0] if found else None


def set_property(transaction: WriteTransaction, name: str, value: str | None) -> None:
    """Keep a value under a name; None removes it."""
    if value is None:
        transaction.execute(REMOVE, (name,))
    else:
        transaction.execute(SET, (name, value))
