"""Long-term memory: how things are done, what went wrong, what was changed, what is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import parse_moment, to_iso
from recollect.orchestrator.longterm import rows, texts
from recollect.orchestrator.longterm.rows import ChangeRow, IncidentRow
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.memory_store import check_version
from recollect.orchestrator.memories.rows import MemoryRow, encode_json
from recollect.orchestrator.memories.typed_memories import Draft, TypedMemories
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.said import key_asked, key_of, named, needed, optional, several
from recollect.orchestrator.search.scope import Scoping
from recollect.orchestrator.storage.interface import Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.protocol import records
from recollect.protocol.collection_names import (
    CONFIG_CHANGES,
    INCIDENTS,
    KNOWLEDGE,
    PROCEDURES,
)
from recollect.protocol.operations import (
    AddMemory,
    ConfigHistory,
    GetProcedure,
    RecordConfigChange,
    ResolveIncident,
    StoreIncident,
    StoreKnowledge,
    StoreProcedure,
)
from recollect.protocol.operations.longterm import LongtermOptions

Stored = Callable[[WriteTransaction], records.LongtermStored]

# How memories of each collection are called, one by one.
MEMORY_TYPES = {
    PROCEDURES: "procedure",
    INCIDENTS: "incident",
    CONFIG_CHANGES: "config_change",
    KNOWLEDGE: "knowledge",
}
PAST_ALL = (1 << 63) - 1


class LongtermService:
    """What is kept for good."""

    def __init__(
        self,
        storage: Storage,
        typed: TypedMemories,
        scoping: Scoping,
        validator: Validator,
        accesses: AccessLog,
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._scoping = scoping
        self._validator = validator
        self._accesses = accesses

    @writes(StoreProcedure)
    async def store_procedure(self, call: Call, operation: StoreProcedure) -> Stored:
        check = self._validator
        key = key_of(check, MEMORY_TYPES[PROCEDURES], "name", operation.name)
        description = optional(check, "description", operation.description)
        steps = several(check, "steps", operation.steps, "procedure_steps_max")
        text = texts.procedure_text(check, operation.name, steps, description)
        draft = await self._draft(call, PROCEDURES, operation, text, key=key)

        def write(transaction: WriteTransaction) -> records.LongtermStored:
            memory, created = self._typed.put(call, transaction, draft)
            columns = (memory.num, description, encode_json(steps).decode())
            transaction.execute(rows.SET_PROCEDURE, columns)
            return stored(memory, created)

        return write

    @reads(GetProcedure)
    async def get_procedure(self, call: Call, operation: GetProcedure) -> records.ProcedureFetched:
        key = key_asked(self._validator, MEMORY_TYPES[PROCEDURES], "name", operation.name)

        def read(session: Session) -> records.ProcedureRecord:
            memory = self._typed.require_key(
                call, session, PROCEDURES, operation.namespace, key, "procedure"
            )
            return rows.procedure_of(session, memory)

        found = await self._storage.read(read)
        self._accesses.note(found["id"], call.now_us)
        return {"status": "success", "procedure": found}

    @writes(StoreIncident)
    async def store_incident(self, call: Call, operation: StoreIncident) -> Stored:
        check = self._validator
        resolution = optional(check, "resolution", operation.resolution)
        incident = IncidentRow(
            num=0,
            title=needed(check, "title", operation.title),
            description=optional(check, "description", operation.description),
            severity=operation.severity,
            cause=optional(check, "cause", operation.cause),
            resolution=resolution,
            occurred_us=parse_moment("occurred_at", operation.occurred_at),
            resolved_us=call.now_us if resolution.strip() else None,
        )
        text = texts.incident_text(check, incident)
        draft = await self._draft(call, INCIDENTS, operation, text)
        # So that it is found where a question names the time.
        draft.row.valid_from_us = incident.occurred_us

        def write(transaction: WriteTransaction) -> records.LongtermStored:
            memory = self._typed.insert(call, transaction, draft)
            incident.num = memory.num
            transaction.insert(rows.INSERT_INCIDENT, [rows.values_of(incident)])
            return stored(memory, created=True)

        return write

    @writes(ResolveIncident)
    async def resolve_incident(self, call: Call, operation: ResolveIncident) -> Stored:
        check = self._validator
        resolution = needed(check, "resolution", operation.resolution)
        cause = None if operation.cause is None else optional(check, "cause", operation.cause)

        def resolved(session: Session) -> tuple[MemoryRow, IncidentRow]:
            memory = self._typed.require(
                call, session, INCIDENTS, operation.incident_id, "incident"
            )
            incident = rows.incident_of(session, memory)
            incident.resolution = resolution
            incident.cause = incident.cause if cause is None else cause
            return memory, incident

        def next_row(session: Session) -> MemoryRow:
            memory, incident = resolved(session)
            return msgspec.structs.replace(memory, content=texts.incident_text(check, incident))

        embedded = await self._typed.embed_next(self._storage, next_row)

        def write(transaction: WriteTransaction) -> records.LongtermStored:
            old, incident = resolved(transaction)
            check_version(old, operation.expected_version)
            content = texts.incident_text(check, incident)
            memory = self._typed.change(call, transaction, old, embedded, content=content)
            columns = (incident.cause, resolution, memory.updated_us, memory.num)
            transaction.execute(rows.RESOLVE, columns)
            return stored(memory, created=False)

        return write

    @writes(RecordConfigChange)
    async def record_config_change(self, call: Call, operation: RecordConfigChange) -> Stored:
        check = self._validator
        parameter = named(check, "parameter", operation.parameter)
        change = ChangeRow(
            num=0,
            component=named(check, "component", operation.component),
            parameter=parameter,
            # What the setting is called may tell that its value is a secret.
            old_value=check.json("old_value", operation.old_value, "value_bytes_max", parameter),
            new_value=check.json("new_value", operation.new_value, "value_bytes_max", parameter),
            reason=optional(check, "reason", operation.reason),
        )
        text = texts.change_text(check, change)
        draft = await self._draft(call, CONFIG_CHANGES, operation, text)

        def write(transaction: WriteTransaction) -> records.LongtermStored:
            memory = self._typed.insert(call, transaction, draft)
            change.num = memory.num
            transaction.insert(rows.INSERT_CHANGE, [rows.values_of(change)])
            return stored(memory, created=True)

        return write

    @reads(ConfigHistory)
    def config_history(
        self, call: Call, operation: ConfigHistory
    ) -> asyncio.Future[records.ConfigChangesListed]:
        limit = self._validator.page(operation.limit)
        position = read_cursor(operation, operation.cursor, 1)
        readable, within = self._scoping.home(call, operation.namespace) or ("TRUE", [])
        names = [self._validator.asked("component", operation.component, "key_chars_max")]
        of_parameter = ""
        if operation.parameter is not None:
            of_parameter = rows.OF_PARAMETER
            names.append(self._validator.asked("parameter", operation.parameter, "key_chars_max"))
        sql = rows.HISTORY.format(of_parameter=of_parameter, readable=readable)
        below = position[0] if position else PAST_ALL

        def read(session: Session) -> records.ConfigChangesListed:
            asked = (*names, below, call.now_us, *within, limit + 1)
            found = session.execute(sql, asked)
            cursor = None
            if len(found) > limit:
                found = found[:limit]
                cursor = make_cursor(operation, [found[-1][0]])
            return {
                "status": "success",
                "changes": [rows.change_of(row) for row in found],
                "count": len(found),
                "cursor": cursor,
            }

        return self._storage.read(read)

    @writes(StoreKnowledge)
    async def store_knowledge(self, call: Call, operation: StoreKnowledge) -> Stored:
        check = self._validator
        key = key_of(check, MEMORY_TYPES[KNOWLEDGE], "title", operation.title)
        text = texts.knowledge_text(check, operation.title, check.content(operation.content))
        draft = await self._draft(call, KNOWLEDGE, operation, text, key=key)

        def write(transaction: WriteTransaction) -> records.LongtermStored:
            return stored(*self._typed.put(call, transaction, draft))

        return write

    async def _draft(
        self,
        call: Call,
        collection: str,
        operation: LongtermOptions,
        text: str,
        key: str | None = None,
    ) -> Draft:
        adding = AddMemory(
            text,
            MEMORY_TYPES[collection],
            "long",
            namespace=operation.namespace,
            key=key,
            importance=operation.importance,
            metadata=operation.metadata,
            tags=operation.tags,
            source=operation.source,
            trust=operation.trust,
        )
        return await self._typed.draft(call, collection, adding)


def stored(memory: MemoryRow, created: bool) -> records.LongtermStored:
    """The answer to what was stored, as new or as the next version."""
    return {
        "status": "success",
        "memory_id": memory.id,
        "collection": memory.collection,
        "version": memory.version,
        "created": created,
        "seq": memory.seq,
        "updated_at": to_iso(memory.updated_us),
    }
