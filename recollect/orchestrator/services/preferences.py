"""What somebody prefers, where an agent is, how a persona is: values under names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from recollect.orchestrator.calls import Call, reads, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.memories.accesses import AccessLog
from recollect.orchestrator.memories.rows import COLUMNS, MemoryRow, decode_json
from recollect.orchestrator.memories.typed_memories import TypedMemories
from recollect.orchestrator.namespaces import readable_spans
from recollect.orchestrator.paging import make_cursor, read_cursor
from recollect.orchestrator.said import key_asked, key_of
from recollect.orchestrator.storage.interface import Row, Session, Storage, WriteTransaction
from recollect.orchestrator.validation import Validator
from recollect.orchestrator.working.rows import name_of
from recollect.orchestrator.working.texts import agent_state_text, persona_text, preference_text
from recollect.protocol import records
from recollect.protocol.collection_names import AGENT_STATES, PERSONAS, PREFERENCES
from recollect.protocol.operations import (
    AddMemory,
    GetAgentState,
    GetPersona,
    GetPreference,
    ListPreferences,
    SaveAgentState,
    SavePersona,
    SavePreference,
)

T = TypeVar("T")
TIER: Final = "medium"
KEY = "preference/"
LIST = f"""
SELECT {COLUMNS} FROM memories
WHERE collection = 'preferences' AND (namespace, key) > (?, ?) AND namespace < ?
    AND substr(key, 1, ?) = ? AND deleted_us IS NULL AND (expires_us IS NULL OR expires_us > ?)
ORDER BY namespace, key LIMIT ?
"""

PutFunction = Callable[[WriteTransaction], records.ValueSaved]


class PreferenceService:
    """Values that go by a name, each a memory that can be recalled."""

    def __init__(
        self, storage: Storage, typed: TypedMemories, validator: Validator, accesses: AccessLog
    ) -> None:
        self._storage = storage
        self._typed = typed
        self._validator = validator
        self._accesses = accesses

    @writes(SavePreference)
    async def save_preference(self, call: Call, operation: SavePreference) -> PutFunction:
        key = key_of(self._validator, "preference", "key", operation.key)
        value = self._value("value", operation.value, operation.key)
        text = preference_text(operation.key, value, self._chars_max)
        adding = AddMemory(
            text,
            "preference",
            TIER,
            namespace=operation.namespace,
            key=key,
            value=value,
            trust=operation.confidence,
        )
        return await self._putting(call, PREFERENCES, adding, operation.expected_version)

    @writes(SaveAgentState)
    async def save_agent_state(self, call: Call, operation: SaveAgentState) -> PutFunction:
        key = key_of(self._validator, "agent_state", "agent_id", operation.agent_id)
        state = self._value("state", operation.state)
        text = agent_state_text(operation.agent_id, state, self._chars_max)
        adding = AddMemory(
            text, "agent_state", TIER, namespace=operation.namespace, key=key, value=state
        )
        return await self._putting(call, AGENT_STATES, adding, operation.expected_version)

    @writes(SavePersona)
    async def save_persona(self, call: Call, operation: SavePersona) -> PutFunction:
        key = key_of(self._validator, "persona", "persona", operation.persona)
        state = self._value("state", operation.state)
        text = persona_text(operation.persona, state, self._chars_max)
        adding = AddMemory(
            text, "persona", TIER, namespace=operation.namespace, key=key, value=state
        )
        return await self._putting(call, PERSONAS, adding, operation.expected_version)

    @property
    def _chars_max(self) -> int:
        return self._validator.limits.content_chars_max

    def _value(self, field: str, value: Any, name: str | None = None) -> Any:
        """A value as it may be stored; its name may call it a secret."""
        self._validator.json(field, value, "value_bytes_max", name)
        return self._validator.cleaned(field, value, name)

    async def _putting(
        self, call: Call, collection: str, adding: AddMemory, expected_version: int | None
    ) -> PutFunction:
        draft = await self._typed.draft(call, collection, adding)

        def write(transaction: WriteTransaction) -> records.ValueSaved:
            row, created = self._typed.put(call, transaction, draft, expected_version)
            return {
                "status": "success",
                "memory_id": row.id,
                "namespace": row.namespace,
                "version": row.version,
                "seq": row.seq,
                "created": created,
                "updated_at": to_iso(row.updated_us),
            }

        return write

    @reads(GetPreference)
    def get_preference(
        self, call: Call, operation: GetPreference
    ) -> records.PreferenceFetched | Awaitable[records.PreferenceFetched]:
        key = key_asked(self._validator, "preference", "key", operation.key)
        place = (operation.namespace, key)

        def answer(row: MemoryRow) -> records.PreferenceFetched:
            return {"status": "success", "preference": preference_of(row)}

        return self._point_read(call, PREFERENCES, place, "preference", answer)

    @reads(GetAgentState)
    def get_agent_state(
        self, call: Call, operation: GetAgentState
    ) -> records.AgentStateFetched | Awaitable[records.AgentStateFetched]:
        key = key_asked(self._validator, "agent_state", "agent_id", operation.agent_id)
        place = (operation.namespace, key)

        def answer(row: MemoryRow) -> records.AgentStateFetched:
            return {
                "status": "success",
                "agent_id": operation.agent_id,
                "state": value_of(row),
                "version": row.version,
                "updated_at": to_iso(row.updated_us),
            }

        return self._point_read(call, AGENT_STATES, place, "state of the agent", answer)

    @reads(GetPersona)
    def get_persona(
        self, call: Call, operation: GetPersona
    ) -> records.PersonaFetched | Awaitable[records.PersonaFetched]:
        key = key_asked(self._validator, "persona", "persona", operation.persona)
        place = (operation.namespace, key)

        def answer(row: MemoryRow) -> records.PersonaFetched:
            return {
                "status": "success",
                "persona": operation.persona,
                "state": value_of(row),
                "version": row.version,
                "updated_at": to_iso(row.updated_us),
            }

        return self._point_read(call, PERSONAS, place, "persona", answer)

    def _point_read(
        self,
        call: Call,
        collection: str,
        place: tuple[str, str],
        what: str,
        answer: Callable[[MemoryRow], T],
    ) -> T | Awaitable[T]:
        """The answer made of one record: at once where the storage is at hand."""

        def read(session: Session) -> MemoryRow:
            return self._typed.require_key(call, session, collection, *place, what)

        def used(row: MemoryRow) -> T:
            self._accesses.note(row.id, call.now_us)
            return answer(row)

        if self._storage.inline_reads:
            return used(self._storage.read_inline(read))
        return self._later(self._storage.read(read), used)

    async def _later(
        self, reading: asyncio.Future[MemoryRow], answer: Callable[[MemoryRow], T]
    ) -> T:
        return answer(await reading)

    @reads(ListPreferences)
    def list_preferences(
        self, call: Call, operation: ListPreferences
    ) -> asyncio.Future[records.PreferencesListed]:
        limit = self._validator.page(operation.limit)
        prefix = KEY + self._validator.asked("prefix", operation.prefix or "", "key_chars_max")
        if operation.namespace is not None:
            self._validator.namespace(operation.namespace)
        behind = tuple(read_cursor(operation, operation.cursor, 2, texts=2) or ("", ""))
        spans = readable_spans(call, operation.namespace)

        def read(session: Session) -> records.PreferencesListed:
            found: list[Row] = []
            for low, high in spans:
                if len(found) <= limit:
                    start = max(behind, (low, ""))
                    beginning = (len(prefix), prefix)
                    params = (*start, high, *beginning, call.now_us, limit + 1 - len(found))
                    found += session.execute(LIST, params)
            rows = [MemoryRow(*row) for row in found[:limit]]
            more = len(found) > limit
            return {
                "status": "success",
                "preferences": [preference_of(row) for row in rows],
                "count": len(rows),
                "cursor": (
                    make_cursor(operation, [rows[-1].namespace, rows[-1].key]) if more else None
                ),
            }

        return self._storage.read(read)


def preference_of(row: MemoryRow) -> records.PreferenceRecord:
    """A preference as callers see it."""
    return {
        "namespace": row.namespace,
        "key": name_of(row),
        "value": value_of(row),
        "confidence": row.trust,
        "version": row.version,
        "updated_at": to_iso(row.updated_us),
        "updated_by": row.updated_by,
    }


def value_of(row: MemoryRow) -> Any:
    """The value that a memory holds; null if somebody took it away."""
    return None if row.value is None else decode_json(row.value)
