"""Decisions: logged with their reasons, given their outcome, found when the next is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from recollect.orchestrator.calls import Call, Refusal, reads, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.decisions import rows
from recollect.orchestrator.decisions.reading import newest
from recollect.orchestrator.decisions.rows import Decision, DecisionRow, record_of
from recollect.orchestrator.decisions.texts import decision_text, with_outcome
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.rows import MemoryRow, encode_json
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.said import needed, optional, several
from recollect.orchestrator.search.similar import Near, Similar
from recollect.orchestrator.services.searching import check_threshold
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.reading import readable_in
from recollect.protocol import records
from recollect.protocol.collection_names import DECISIONS, GOALS
from recollect.protocol.errors import NotFound
from recollect.protocol.operations import (
    AddMemory,
    FindSimilarDecisions,
    GetDecision,
    ListDecisions,
    LogDecision,
    RecordOutcome,
)

MEMORY_TYPE = "decision"
RECEIPT_OF = "SELECT identity FROM receipts WHERE id = ?"


class DecisionService:
    """Who chose what, among what, why, and what came of it."""

    def __init__(
        self,
        storage: Storage,
        typed: TypedMemories,
        similar: Similar,
        validator: Validator,
        accesses: AccessLog,
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._similar = similar
        self._validator = validator
        self._accesses = accesses

    @writes(LogDecision)
    async def log_decision(
        self, call: Call, operation: LogDecision
    ) -> Callable[[WriteTransaction], records.DecisionLogged]:
        check = self._validator
        task_id = operation.task_id or call.task
        if operation.receipt_id is not None:
            check.asked("receipt_id", operation.receipt_id, "key_chars_max")
        row = DecisionRow(
            num=0,
            task_id=None if task_id is None else check.text("task_id", task_id, "key_chars_max"),
            goal_num=None,
            receipt_id=operation.receipt_id,
            context=needed(check, "context", operation.context),
            options="",
            choice=needed(check, "choice", operation.choice),
            reasoning=optional(check, "reasoning", operation.reasoning),
            confidence=operation.confidence,
        )
        options = several(check, "options", operation.options, "decision_options_max")
        row.options = encode_json(options).decode()
        adding = AddMemory(
            decision_text(check, row.context, options, row.choice, row.reasoning),
            MEMORY_TYPE,
            "medium",
            namespace=operation.namespace,
            metadata=operation.metadata,
            tags=operation.tags,
        )
        draft = await self._typed.draft(call, DECISIONS, adding)

        def write(transaction: WriteTransaction) -> records.DecisionLogged:
            if operation.goal_id is not None:
                row.goal_num = self._goal_num(call, transaction, operation.goal_id)
            if operation.receipt_id is not None:
                require_receipt(call, transaction, operation.receipt_id)
            memory = self._typed.insert(call, transaction, draft)
            row.num = memory.num
            transaction.insert(rows.INSERT, [rows.values_of(row)])
            return {
                "status": "success",
                "decision_id": memory.id,
                "version": memory.version,
                "seq": memory.seq,
                "created_at": to_iso(memory.created_us),
            }

        return write

    def _goal_num(self, call: Call, session: Session, goal_id: str) -> int:
        # To serve a goal is not to change it.
        return self._typed.require(call, session, GOALS, goal_id, "goal", "read").num

    @writes(RecordOutcome)
    async def record_outcome(
        self, call: Call, operation: RecordOutcome
    ) -> Callable[[WriteTransaction], records.OutcomeRecorded]:
        check = self._validator
        outcome = needed(check, "outcome", operation.outcome)
        success = None if operation.success is None else int(operation.success)

        def next_row(session: Session) -> MemoryRow:
            found, content = said(session)
            return msgspec.structs.replace(found.memory, content=content)

        def said(session: Session) -> tuple[Decision, str]:
            found = self._require(call, session, operation.decision_id)
            return found, with_outcome(check, found.row, outcome, success)

        embedded = await self._typed.embed_next(self._storage, next_row)

        def write(transaction: WriteTransaction) -> records.OutcomeRecorded:
            found, content = said(transaction)
            memory = self._typed.change(call, transaction, found.memory, embedded, content=content)
            told = (outcome, success, memory.updated_us, call.author, memory.num)
            transaction.execute(rows.SET_OUTCOME, told)
            return {
                "status": "success",
                "decision_id": memory.id,
                "version": memory.version,
                "seq": memory.seq,
                "updated_at": to_iso(memory.updated_us),
            }

        return write

    def _require(self, call: Call, session: Session, decision_id: str) -> Decision:
        memory = self._typed.require(call, session, DECISIONS, decision_id, "decision")
        return rows.with_columns(session, [memory])[0]

    @reads(GetDecision)
    async def get_decision(self, call: Call, operation: GetDecision) -> records.DecisionFetched:
        found = await self._storage.read(
            lambda session: self._require(call, session, operation.decision_id)
        )
        self._accesses.note(found.memory.id, call.now_us)
        return {"status": "success", "decision": record_of(call, found)}

    @reads(FindSimilarDecisions)
    async def find_similar_decisions(
        self, call: Call, operation: FindSimilarDecisions
    ) -> records.DecisionsFound:
        k = self._validator.page(operation.k)
        self._validator.asked("context", operation.context, "query_chars_max")
        check_threshold(operation.threshold)
        question = await self._similar.question(call, operation.context)

        def read(session: Session) -> tuple[Near, list[Decision]]:
            near = self._similar.find(
                call,
                session,
                question,
                DECISIONS,
                k,
                namespace=operation.namespace,
                threshold=operation.threshold,
                only=(rows.WITH_OUTCOME, []) if operation.with_outcome else None,
            )
            return near, rows.with_columns(session, [row for row, _ in near])

        near, found = await self._storage.read(read)
        self._similar.served(call, near)
        similarity = {row.num: score for row, score in near}
        return {
            "status": "success",
            "decisions": [record_of(call, one, similarity[one.memory.num]) for one in found],
            "count": len(found),
        }

    @reads(ListDecisions)
    def list_decisions(
        self, call: Call, operation: ListDecisions
    ) -> asyncio.Future[records.DecisionsListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1)
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        home = readable_in(call, operation.namespace)
        if operation.task_id is not None:
            self._validator.asked("task_id", operation.task_id, "key_chars_max")

        def read(session: Session) -> records.DecisionsListed:
            goal_id = operation.goal_id
            found = newest(
                session,
                call.now_us,
                home,
                limit + 1,
                below=position[0] if position else rows.PAST_ALL,
                task_id=operation.task_id,
                goal_num=None if goal_id is None else self._goal_num(call, session, goal_id),
            )
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1].memory.num])
            return {
                "status": "success",
                "decisions": [record_of(call, decision) for decision in found],
                "count": len(found),
                "cursor": cursor,
            }

        return self._storage.read(read)


def require_receipt(call: Call, session: Session, receipt_id: str) -> None:
    """Refuse a receipt that is not there, or was given to somebody else."""
    found = session.execute(RECEIPT_OF, (receipt_id,))
    if found and (found[0][0] == call.identity or call.grants.everywhere("admin")):
        return
    if found:
        call.refusals.append(Refusal(receipt_id, None, "given to another identity"))
    raise NotFound(f"There is no receipt {receipt_id!r}.", receipt_id=receipt_id)
