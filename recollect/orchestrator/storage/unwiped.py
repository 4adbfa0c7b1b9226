"""The mark that rows were removed for good, and that the files are still to be scrubbed."""

from __future__ import annotations

from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.orchestrator.storage.properties import get_property, set_property

NAME = "unwiped"
UNMARK = "DELETE FROM properties WHERE name = ? AND value = ?"


def mark(transaction: WriteTransaction) -> str:
    """Set it, in the transaction that removes the rows; returns it."""
    value = str(transaction.last_seq())
    set_property(transaction, NAME, value)
    return value


def marked(session: Session) -> str | None:
    """The mark of the last such transaction, if there is one."""
    return get_property(session, NAME)


def unmark(value: str, transaction: WriteTransaction) -> None:
    """Take a mark away, unless there was another such transaction since."""
    transaction.execute(UNMARK, (NAME, value))
