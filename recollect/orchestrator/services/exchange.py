"""Exporting and importing: the records of a store, page by page, as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.exchange import bringing_links, lines
from recollect.orchestrator.exchange.bringing import (
    ADDED,
    COMPLETED,
    PRESENT,
    Arrivals,
    mentioned_in,
)
from recollect.orchestrator.exchange.bringing_memories import MemoryArrival
from recollect.orchestrator.exchange.bringing_sessions import SessionArrival
from recollect.orchestrator.exchange.checking import (
    KINDS,
    Checked,
    Checking,
    Happening,
    Memory,
    More,
    Shared,
    Sitting,
)
from recollect.orchestrator.exchange.pages import Extent, Page
from recollect.orchestrator.exchange.positions import Position, cursor_of, read_position
from recollect.orchestrator.exchange.reading_links import (
    read_documents,
    read_evidence,
    read_groups,
    read_relationships,
)
from recollect.orchestrator.exchange.reading_memories import read_memories
from recollect.orchestrator.exchange.reading_sessions import (
    read_app_state,
    read_sessions,
    read_user_state,
)
from recollect.orchestrator.memories.memory_store import MemoryStore
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.sessions.state import States
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.storage.journal import READ_LEDGER
from recollect.orchestrator.storage.properties import STORE_ID, get_property
from recollect.orchestrator.trust.secret_policy import SecretPolicy
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.errors import Conflict, RecollectError
from recollect.protocol.operations import ExportRecords, ImportRecords

PAGE_BYTES_MAX = 4_000_000
COUNT = "SELECT count(*) FROM memories WHERE {condition}"
# One after the other: what refers to something comes behind it.
STAGES: tuple[Callable[[Session, Extent, Position, Page], Position | None], ...] = (
    read_memories,
    read_relationships,
    read_evidence,
    read_groups,
    read_documents,
    read_sessions,
    read_user_state,
    read_app_state,
)


class Taken(msgspec.Struct, frozen=True):
    """One record that was sent: checked, or why it is refused."""

    kind: str
    id: str
    line: lines.Lines | None = None
    checked: Checked | None = None
    error: RecollectError | None = None


class ExchangeService:
    """Gives out all there is, and takes it in."""

    def __init__(
        self,
        storage: Storage,
        store: MemoryStore,
        validator: Validator,
        states: States,
        secrets: SecretPolicy | None,
    ) -> None:
        self._storage = storage
        self._validator = validator
        self._states = states
        self._secrets = secrets
        self._checking = Checking(validator, states)
        self._memories = MemoryArrival(store, self._checking)
        self._bytes_max = min(PAGE_BYTES_MAX, validator.limits.payload_bytes_max // 4)

    @reads(ExportRecords)
    def export_records(
        self, call: Call, operation: ExportRecords
    ) -> asyncio.Future[records.RecordsExported]:
        if operation.namespace is None:
            call.require(None)
        limit = self._validator.page(operation.limit)
        extent = Extent(operation.namespace)
        begun = read_position(operation, len(STAGES))

        def read(session: Session) -> records.RecordsExported:
            at, memories = begun, None
            if at is None:
                [(seq, _)] = session.execute(READ_LEDGER)
                at = Position(until=seq)
                condition, params = extent.condition()
                [(memories,)] = session.execute(COUNT.format(condition=condition), params)
            page = Page(limit, self._bytes_max)
            until = at.until
            while not page.full:
                went = STAGES[at.stage](session, extent, at, page)
                if went is None and at.stage + 1 == len(STAGES):
                    at = None
                    break
                at = at.next_stage() if went is None else went
            return {
                "status": "success",
                "records": page.records,
                "cursor": None if at is None else cursor_of(operation, at),
                "seq": until,
                "store_id": get_property(session, STORE_ID),
                "memories": memories,
            }

        return self._storage.read(read)

    @writes(ImportRecords)
    async def import_records(
        self, call: Call, operation: ImportRecords
    ) -> Callable[[WriteTransaction], records.RecordsImported]:
        self._validator.at_most("batch_items_max", "records", len(operation.records), "items")
        # A page may be large; whoever else waits is served meanwhile.
        taken = await to_the_end(lambda: [self._take(given) for given in operation.records])
        return partial(self._import, call, taken, operation.dry_run)

    def _take(self, given: dict[str, Any]) -> Taken:
        """Check one record; what is refused is named by its place alone."""
        try:
            line, checked = self._checking.line(given)
            return Taken(str(given["kind"]), lines.id_of(line), line, checked)
        except RecollectError as error:
            if self._secrets is not None:
                error = self._secrets.blotted(error)
            kind = given.get("kind")
            return Taken(kind if isinstance(kind, str) and kind in KINDS else "", "", error=error)

    def _import(
        self, call: Call, taken: list[Taken], dry_run: bool, transaction: WriteTransaction
    ) -> records.RecordsImported:
        mentioned = (
            memory_id
            for one in taken
            if one.line is not None and one.checked is not None
            for memory_id in mentioned_in(one.line, one.checked)
        )
        page = Arrivals(call, transaction, dry_run=dry_run, mentioned=mentioned)
        sessions = SessionArrival(page, self._states)
        counts = dict.fromkeys((ADDED, PRESENT, COMPLETED, "conflict", "refused"), 0)
        waiting: list[int] = []
        problems: list[records.RecordProblem] = []
        for place, one in enumerate(taken):
            page.waits = False
            try:
                if one.checked is None:
                    assert one.error is not None
                    raise one.error
                outcome = self._arrive(page, sessions, one.checked)
                if page.waits:
                    waiting.append(place)
            except RecollectError as error:
                outcome = "conflict" if isinstance(error, Conflict) else "refused"
                page.strangers.add(one.id)
                problems.append(
                    {
                        "item": place,
                        "kind": one.kind,
                        "id": one.id,
                        "outcome": outcome,
                        "error": error.body(),
                    }
                )
            counts[outcome] += 1
        return {
            "status": "partial" if problems else "success",
            "added": counts[ADDED],
            "present": counts[PRESENT],
            "completed": counts[COMPLETED],
            "conflicts": counts["conflict"],
            "refused": counts["refused"],
            "waiting": waiting,
            "problems": problems,
            "dry_run": dry_run,
            "seq": transaction.last_seq(),
        }

    def _arrive(self, page: Arrivals, sessions: SessionArrival, checked: Checked) -> str:
        """Take one record in; what became of it."""
        match checked:
            case Memory():
                return self._memories.memory(page, checked)
            case More():
                return self._memories.more(page, checked)
            case lines.RelationshipLine():
                return bringing_links.take_relationship(page, checked)
            case lines.EvidenceLine():
                return bringing_links.take_evidence(page, checked)
            case lines.GroupLine():
                return bringing_links.take_group(page, checked)
            case lines.MembersLine():
                return bringing_links.take_members(page, checked)
            case lines.DocumentLine():
                return bringing_links.take_document(page, checked)
            case Sitting():
                return sessions.session(checked)
            case Happening():
                return sessions.event(checked)
            case Shared():
                return sessions.shared(checked)
