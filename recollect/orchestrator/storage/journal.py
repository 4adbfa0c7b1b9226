"""The journal: one row a change, chained by hash, written in the change's own transaction.

A row is the audit entry and the event of the feed at once. Each row's hash covers all its fields
and the hash before it, so an edited, removed or reordered row breaks the chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from recollect.orchestrator.storage.inserting import Insert, insert_rows
from recollect.orchestrator.storage.interface import Change, Session, WriteTransaction

GENESIS = bytes(32)

# Taking the row also locks it on PostgreSQL, so that changes commit in the order of their numbers.
OPEN_LEDGER = "UPDATE ledger SET seq = seq WHERE id = 1 RETURNING seq, head"
CLOSE_LEDGER = "UPDATE ledger SET seq = ?, head = ? WHERE id = 1"
READ_LEDGER = "SELECT seq, head FROM ledger WHERE id = 1"
FIELDS = Change.__struct_fields__
APPEND = Insert("journal", (*FIELDS, "hash"))
COLUMNS = ", ".join(APPEND.columns)
SCAN = f"SELECT {COLUMNS} FROM journal WHERE seq >= ? ORDER BY seq LIMIT ?"
FIELDS_ONCE = 12
NOTHING_LATER = (None,) * (len(FIELDS) - FIELDS_ONCE)

_encode = msgspec.msgpack.Encoder().encode
_fields = msgspec.structs.astuple
_sha256 = hashlib.sha256


def chain(head: bytes, change: Change) -> bytes:
    """The hash of a change that follows `head`."""
    return _chain(head, _fields(change))


def _chain(head: bytes, fields: tuple[Any, ...]) -> bytes:
    # Entries were once shorter: one that says nothing in its later fields is hashed as they were.
    # An array says its length, and so no two entries are encoded alike.
    if fields[FIELDS_ONCE:] == NOTHING_LATER:
        fields = fields[:FIELDS_ONCE]
    return _sha256(head + _encode(fields)).digest()


class Ledger:
    """The end of the journal, held open while a batch is written."""

    __slots__ = ("head", "seq")

    def __init__(self, session: Session) -> None:
        [(seq, head)] = session.execute(OPEN_LEDGER)
        self.seq = int(seq)
        self.head = bytes(head)

    def seal(self, session: Session, transactions: Iterable[WriteTransaction], seq: int) -> None:
        """Append the changes of a batch and move the end."""
        rows = []
        head = self.head
        for transaction in transactions:
            for change in transaction.changes:
                fields = _fields(change)
                head = _chain(head, fields)
                rows.append((*fields, head))
        self.head = head
        if rows or seq != self.seq:
            insert_rows(session, APPEND, rows)
            session.execute(CLOSE_LEDGER, (seq, self.head))
            self.seq = seq
