"""Receipts: which context was given to whom, without a word of its memories.

A receipt names memories in their versions and how much of each was given. How things stood is in
it as it was given, since nothing else tells that later.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.orchestrator.context.fencing import FORMAT
from recollect.orchestrator.context.live import LivePiece
from recollect.orchestrator.memories.rows import encode_json
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.interface import Session, WriteTransaction

TRIM_RECEIPTS = 500
OLD = "SELECT id FROM receipts WHERE at_us < ? ORDER BY at_us, id LIMIT ?"
TRIM_ITEMS = f"DELETE FROM receipt_items WHERE receipt_id IN ({OLD})"
TRIM = f"DELETE FROM receipts WHERE id IN ({OLD}) RETURNING 1"
COUNT_OLD = f"SELECT count(*) FROM ({OLD}) AS old"
SURPLUS = """
SELECT id FROM receipts WHERE identity = ? ORDER BY at_us DESC, id DESC LIMIT ? OFFSET ?
"""
FORGET = (
    "DELETE FROM receipt_items WHERE receipt_id = ?",
    "DELETE FROM receipts WHERE id = ?",
)

# Whatever was purged since it was found took with it what the context was asked for.
FORGET_TASK = """
UPDATE receipts SET task_id = NULL, task_description = ''
WHERE id = ? AND EXISTS (
    SELECT 1 FROM receipt_items i WHERE i.receipt_id = receipts.id
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.num = i.num)
)
"""


class Frame(msgspec.Struct, frozen=True):
    """What makes the fences of a context its own, and how things stood."""

    nonce: str
    live: list[tuple[LivePiece, int]] = []
    format: int = FORMAT


class Receipt(msgspec.Struct, frozen=True):
    """One row of `receipts`, in the order of its columns."""

    id: str
    at_us: int
    identity: str
    agent: str | None
    namespace: str | None
    task_id: str | None
    task_description: str
    tokens: int
    tokens_max: int
    tokenizer: str
    frame: str


class Item(msgspec.Struct, frozen=True):
    """One row of `receipt_items`: a memory that was given, in the order of the context."""

    receipt_id: str
    position: int
    num: int
    memory_id: str
    version: int
    tier: str
    score: float
    tokens: int
    chars: int | None


INSERT = Insert("receipts", Receipt.__struct_fields__)
INSERT_ITEM = Insert("receipt_items", Item.__struct_fields__)
SELECT = f"SELECT {', '.join(Receipt.__struct_fields__)} FROM receipts WHERE id = ?"
SELECT_ITEMS = (
    f"SELECT {', '.join(Item.__struct_fields__)} FROM receipt_items "
    "WHERE receipt_id = ? ORDER BY position"
)


def encode_frame(frame: Frame) -> str:
    """A frame as it is stored."""
    return encode_json(frame).decode()


def frame_of(receipt: Receipt) -> Frame:
    """The frame of a receipt."""
    return msgspec.json.decode(receipt.frame, type=Frame)


def write(transaction: WriteTransaction, receipt: Receipt, items: Sequence[Item]) -> None:
    """Store a receipt. No memory changes by it, so it is no change that is followed or audited."""
    transaction.insert(INSERT, [msgspec.structs.astuple(receipt)])
    transaction.insert(INSERT_ITEM, map(msgspec.structs.astuple, items))
    transaction.execute(FORGET_TASK, (receipt.id,))


def make_room(transaction: WriteTransaction, identity: str, kept_max: int) -> None:
    """Forget the oldest receipts of an identity that has too many, a bounded number at a time."""
    for surplus in transaction.execute(SURPLUS, (identity, TRIM_RECEIPTS, kept_max)):
        for statement in FORGET:
            transaction.execute(statement, surplus)


def find(session: Session, receipt_id: str) -> tuple[Receipt, list[Item]] | None:
    """A receipt with its items; None if there is none."""
    found = session.execute(SELECT, (receipt_id,))
    if not found:
        return None
    items = [Item(*row) for row in session.execute(SELECT_ITEMS, (receipt_id,))]
    return Receipt(*found[0]), items


def trim(before_us: int, rows_max: int, transaction: WriteTransaction) -> int:
    """Forget the oldest receipts, so many at most; how many."""
    transaction.execute(TRIM_ITEMS, (before_us, rows_max))
    return len(transaction.execute(TRIM, (before_us, rows_max)))
