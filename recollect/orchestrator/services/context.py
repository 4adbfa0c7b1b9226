"""Context: assembled for a task within its tokens, and made again from its receipt."""

from __future__ import annotations

import asyncio
import random

import msgspec
import structlog

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.clock import IdSource, to_iso
from recollect.orchestrator.context import live, receipts
from recollect.orchestrator.context.chunks import live_chunk, memory_chunk
from recollect.orchestrator.context.fencing import draw_nonce, quotation_of
from recollect.orchestrator.context.live import LivePiece, critical_ids, live_pieces
from recollect.orchestrator.context.receipts import Frame, Item, Receipt, encode_frame
from recollect.orchestrator.context.replay import Replaying
from recollect.orchestrator.context.selection import Selected, Selection
from recollect.orchestrator.context.tier_search import Looked, TierSearch
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.operational.state import OperationalReading
from recollect.orchestrator.storage.interface import Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument, Unavailable
from recollect.protocol.operations import AssembleContext, ReplayContext
from recollect.tokens import TokenCounter

log = structlog.get_logger()

LOOKS_AFTER = 100
"""Receipts after which, on average, those of an identity are counted."""


class ContextService:
    """Gives contexts, and knows which it gave."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        search: TierSearch,
        operational: OperationalReading,
        counter: TokenCounter,
        validator: Validator,
        accesses: AccessLog,
        ids: IdSource,
        randomness: random.Random,
        receipts_max: int,
    ) -> None:
        self._storage = storage
        self._search = search
        self._operational = operational
        self._counter = counter
        self._validator = validator
        self._accesses = accesses
        self._ids = ids
        self._randomness = randomness
        self._receipts_max = receipts_max
        self._replaying = Replaying(store)

    @reads(AssembleContext)
    async def assemble_context(
        self, call: Call, operation: AssembleContext
    ) -> records.ContextAssembled:
        operation = self._checked(operation)
        tiers = list(dict.fromkeys(operation.tiers))
        pieces: list[LivePiece] = []
        critical: list[str] = []
        if live.TIER in tiers:
            state = await self._operational.state(
                call,
                operation.namespace,
                events=live.EVENTS,
                metrics=live.METRICS,
                tasks=live.TASKS,
            )
            pieces = live_pieces(state, operation.task_id)
            critical = critical_ids(state, call.now_us)
        looked = await self._search.look(call, operation, tiers, critical)
        nonce, selected = await asyncio.to_thread(
            self._select, looked, pieces, operation.max_tokens
        )
        receipt_id, unwritten = await self._receipt(call, operation, nonce, selected)
        for pick in selected.picks:
            self._accesses.note(pick.considered.row.id, call.now_us)
        return self._answer(operation, looked, pieces, selected, receipt_id, unwritten)

    @reads(ReplayContext)
    async def replay_context(self, call: Call, operation: ReplayContext) -> records.ContextReplayed:
        self._validator.asked("receipt_id", operation.receipt_id, "key_chars_max")
        replayed = await self._storage.read(
            lambda session: self._replaying.replay(call, session, operation.receipt_id)
        )
        receipt = replayed.receipt
        tokens, tokenizer = receipt.tokens, receipt.tokenizer
        if replayed.missing:
            tokens = await asyncio.to_thread(self._counter.count, replayed.text)
            tokenizer = self._counter.name
        return {
            "status": "success",
            "receipt_id": receipt.id,
            "context": replayed.text,
            "chunks": replayed.chunks,
            "count": len(replayed.chunks),
            "tokens": tokens,
            "max_tokens": receipt.tokens_max,
            "tokenizer": tokenizer,
            "task_description": receipt.task_description,
            "assembled_at": to_iso(receipt.at_us),
            "assembled_for": receipt.identity,
            "complete": not replayed.missing,
            "missing": replayed.missing,
        }

    def _checked(self, operation: AssembleContext) -> AssembleContext:
        """The operation as it may be kept in a receipt."""
        if not operation.tiers:
            raise InvalidArgument(
                "tiers is empty; name where to look, or leave it out to look everywhere.",
                field="tiers",
            )
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        task_id = operation.task_id
        if task_id is not None:
            task_id = self._validator.text("task_id", task_id, "key_chars_max")
        return msgspec.structs.replace(
            operation,
            task_id=task_id,
            task_description=self._validator.prose(
                "task_description", operation.task_description, "query_chars_max"
            ),
        )

    def _select(
        self, looked: Looked, pieces: list[LivePiece], tokens_max: int
    ) -> tuple[str, Selected]:
        """The context, and the name of its fences."""
        found = [(one, quotation_of(one.row)) for one in looked.considered]
        # A text of nothing but what cannot be seen says nothing.
        quoted = [pair for pair in found if pair[1].text]
        nonce = draw_nonce(
            self._randomness,
            [*(quotation for _, quotation in quoted), *(piece.quotation for piece in pieces)],
        )
        return nonce, Selection(self._counter, nonce, tokens_max, quoted).run(pieces)

    async def _receipt(
        self, call: Call, operation: AssembleContext, nonce: str, selected: Selected
    ) -> tuple[str | None, str | None]:
        """The id of the stored receipt, or why there is none."""
        if not selected.text:
            return None, None
        receipt = Receipt(
            id=self._ids.new(),
            at_us=call.now_us,
            identity=call.identity,
            agent=call.agent,
            namespace=operation.namespace,
            task_id=operation.task_id,
            task_description=operation.task_description,
            tokens=selected.tokens,
            tokens_max=operation.max_tokens,
            tokenizer=self._counter.name,
            frame=encode_frame(Frame(nonce, selected.live)),
        )
        items = [
            Item(
                receipt_id=receipt.id,
                position=position,
                num=pick.considered.row.num,
                memory_id=pick.considered.row.id,
                version=pick.considered.row.version,
                tier=pick.considered.tier,
                score=pick.considered.score,
                tokens=pick.tokens,
                chars=pick.chars,
            )
            for position, pick in enumerate(selected.picks)
        ]

        def write(transaction: WriteTransaction) -> None:
            receipts.write(transaction, receipt, items)
            # Counting looks at all of them, so it is not done each time: a tenth more may be there.
            if not self._randomness.randrange(min(LOOKS_AFTER, 1 + self._receipts_max // 10)):
                receipts.make_room(transaction, call.identity, self._receipts_max)

        try:
            await self._storage.write(write)
        except Unavailable as error:
            # What was found helps without its receipt too: reads go on while nothing can be
            # written.
            log.warning("A receipt was not written.", action="context", reason=error.message)
            return None, f"There is no receipt of this context: {error.message}"
        return receipt.id, None

    def _answer(
        self,
        operation: AssembleContext,
        looked: Looked,
        pieces: list[LivePiece],
        selected: Selected,
        receipt_id: str | None,
        unwritten: str | None,
    ) -> records.ContextAssembled:
        chunks = [
            live_chunk(n, piece, tokens) for n, (piece, tokens) in enumerate(selected.live, 1)
        ]
        chunks += [
            memory_chunk(
                n,
                pick.considered.row,
                pick.quotation,
                tier=pick.considered.tier,
                score=pick.considered.score,
                tokens=pick.tokens,
                chars=pick.chars,
            )
            for n, pick in enumerate(selected.picks, len(chunks) + 1)
        ]
        answer: records.ContextAssembled = {
            "status": "success",
            "context": selected.text,
            "chunks": chunks,
            "count": len(chunks),
            "tokens": selected.tokens,
            "max_tokens": operation.max_tokens,
            "tokenizer": self._counter.name,
            "considered": looked.weighed,
            "receipt_id": receipt_id,
        }
        if not chunks:
            answer["note"] = (
                f"Nothing of what was found fits into {operation.max_tokens:,} tokens."
                if looked.weighed or pieces
                else "Nothing is remembered that would help."
            )
        if degraded := " ".join(part for part in (looked.degraded, unwritten) if part):
            answer["degraded"] = degraded
        return answer
