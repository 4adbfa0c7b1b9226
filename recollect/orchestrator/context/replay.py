"""A context as it was given, made again from its receipt and the versions that it names."""

from __future__ import annotations

import msgspec

from recollect.orchestrator.calls import Call, Refusal
from recollect.orchestrator.context import receipts
from recollect.orchestrator.context.chunks import live_chunk, memory_chunk
from recollect.orchestrator.context.fencing import quotation_of
from recollect.orchestrator.context.receipts import Item, Receipt, frame_of
from recollect.orchestrator.context.selection import written
from recollect.orchestrator.memories.memory_store import VERSION_BY_NUMBER, MemoryStore
from recollect.orchestrator.memories.rows import MemoryRow, with_snapshot
from recollect.orchestrator.storage.interface import Session
from recollect.protocol import records
from recollect.protocol.errors import NotFound


class Replayed(msgspec.Struct, frozen=True):
    """A context that was made again."""

    receipt: Receipt
    text: str
    chunks: list[records.ContextChunk]
    missing: list[str]


class Replaying:
    """Makes contexts again, for those whom they were given to."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def replay(self, call: Call, session: Session, receipt_id: str) -> Replayed:
        """What of a context is still there and may be seen by the caller now."""
        found = receipts.find(session, receipt_id)
        if found is None or not may_replay(call, found[0]):
            raise NotFound(f"There is no receipt {receipt_id!r}.", receipt_id=receipt_id)
        receipt, items = found
        frame = frame_of(receipt)
        blocks: list[str] = []
        chunks: list[records.ContextChunk] = []
        missing: list[str] = []
        for n, (piece, tokens) in enumerate(frame.live, 1):
            if call.sees(piece.namespace, receipt_id):
                blocks.append(piece.quotation.block(frame.nonce, n))
                chunks.append(live_chunk(n, piece, tokens))
            else:
                missing.append(f"{piece.kind} of {piece.namespace}")
        rows = {
            row.num: row
            for row, _ in self._store.rows_of(session, [(item.num, None) for item in items])
        }
        for n, item in enumerate(items, len(frame.live) + 1):
            row = as_given(call, session, rows.get(item.num), item)
            if row is None:
                missing.append(item.memory_id)
                continue
            quoted = quotation_of(row)
            blocks.append(quoted.block(frame.nonce, n, item.chars))
            chunks.append(
                memory_chunk(
                    n,
                    row,
                    quoted,
                    tier=item.tier,
                    score=item.score,
                    tokens=item.tokens,
                    chars=item.chars,
                )
            )
        text = written(frame.nonce, blocks) if blocks else ""
        return Replayed(receipt, text, chunks, missing)


def may_replay(call: Call, receipt: Receipt) -> bool:
    """Whether the context was given to the caller, or the caller may do anything anywhere."""
    if call.identity == receipt.identity or call.grants.everywhere("admin"):
        return True
    call.refusals.append(Refusal(receipt.id, receipt.namespace, "given to somebody else"))
    return False


def as_given(call: Call, session: Session, row: MemoryRow | None, item: Item) -> MemoryRow | None:
    """A memory in the version that was given; None if that is gone, or not the caller's to see."""
    if row is None or not call.sees(row.namespace, row.id):
        return None
    if row.version == item.version:
        return row
    found = session.execute(VERSION_BY_NUMBER, (row.num, item.version))
    return with_snapshot(row, found[0][0]) if found else None
