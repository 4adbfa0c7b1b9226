"""The memory service of Google's ADK on Recollect.

Each event that says something is a memory of its user, under the key of the event: so what is added
twice is there once, and other agents of the user find it as well.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

try:
    from google.adk.events.event import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai import types
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError(
        "recollect.integrations.google_adk_memory needs ADK: pip install 'recollect[adk]'"
    ) from missing

from recollect.integrations.adapter import AsyncAdapter
from recollect.integrations.events import packed, unpacked
from recollect.integrations.names import key_of, name_of, namespace_of
from recollect.integrations.steps import Steps
from recollect.protocol.errors import AlreadyExists, LimitExceeded, NotFound, from_body
from recollect.protocol.operations import (
    BatchAddMemories,
    DeleteByKey,
    ListMemories,
    Put,
    Recall,
)
from recollect.protocol.records import FoundMemory

SAID = "adk.event"
GONE = "adk.deleted"
"""What stands under the key of an event that was deleted, so that it is not added again."""
RESULTS = 10
BATCH_ITEMS = 100
PAGE_ITEMS = 100
PAGES_MAX = 1000
CONTENT_CHARS_MAX = 200_000
CONTENT_BYTES_MAX = 262_144


class RecollectMemoryService(AsyncAdapter, BaseMemoryService):
    """What was said, found by words and by meaning, for all agents of a user."""

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember what a session says by now, and nothing else of it."""
        namespace = _namespace(session.app_name, session.user_id)
        drafts = _drafts(session.events, session.id)
        await self._follow(_replacing(namespace, session.id, drafts))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember some events beside what is remembered already."""
        drafts = _drafts(events, session_id, custom_metadata)
        await self._follow(_adding(_namespace(app_name, user_id), drafts))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember entries as they are; one with an id that is known already stays as it is."""
        drafts = [
            draft
            for entry in memories
            if (
                draft := _draft(
                    entry.id or str(uuid.uuid4()),
                    entry.content,
                    author=entry.author,
                    moment=entry.timestamp,
                    custom={**entry.custom_metadata, **(custom_metadata or {})},
                )
            )
        ]
        await self._follow(_adding(_namespace(app_name, user_id), drafts))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """The ten memories that help most with a query."""
        if not query.strip():
            return SearchMemoryResponse()
        return await self._follow(_searching(_namespace(app_name, user_id), query))

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory; adding its session again does not bring it back."""
        if memory_id:
            await self._follow(_deleting(_namespace(app_name, user_id), key_of(memory_id)))


def _namespace(app_name: str, user_id: str) -> str:
    return namespace_of("user", (user_id, app_name))


def _drafts(
    events: Iterable[Event],
    session_id: str | None,
    custom: Mapping[str, object] | None = None,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in events:
        moment = datetime.fromtimestamp(event.timestamp).isoformat()
        draft = _draft(
            event.id,
            event.content,
            author=event.author,
            moment=moment,
            session_id=session_id,
            custom=custom,
        )
        if draft is not None:
            found.append(draft)
    return found


def _draft(
    name: str,
    content: types.Content | None,
    *,
    author: str | None,
    moment: str | None,
    session_id: str | None = None,
    custom: Mapping[str, object] | None = None,
) -> dict[str, Any] | None:
    """A memory as `add_memory` takes it; None of what says nothing."""
    parts = (content.parts if content is not None else None) or []
    text = " ".join(part.text for part in parts if part.text)
    if content is None or not text.strip():
        return None
    return {
        "content": text.replace("\x00", " ")[:CONTENT_CHARS_MAX],
        "memory_type": SAID,
        "memory_tier": "medium",
        "key": key_of(name),
        "value": {
            "content": packed(_dumped(content)),
            "author": author,
            "timestamp": moment,
            "custom_metadata": packed(dict(custom or {})),
        },
        "metadata": {"session": session_id},
    }


def _dumped(content: types.Content) -> dict[str, Any]:
    """Content as JSON; of what is large, such as a message with a picture, only the text."""
    dumped: dict[str, Any] = content.model_dump(mode="json", exclude_none=True)
    if len(json.dumps(dumped)) <= CONTENT_BYTES_MAX:
        return dumped
    texts = [{"text": part.text} for part in content.parts or [] if part.text]
    return {"role": content.role, "parts": texts}


def _adding(namespace: str, drafts: list[dict[str, Any]]) -> Steps[None]:
    for start in range(0, len(drafts), BATCH_ITEMS):
        answer = yield BatchAddMemories(drafts[start : start + BATCH_ITEMS], namespace=namespace)
        for result in answer["results"]:
            if result["status"] == "error":
                error = from_body(result["error"])
                # It is remembered already, or was and is not to be.
                if not isinstance(error, AlreadyExists):
                    raise error


def _replacing(namespace: str, session_id: str, drafts: list[dict[str, Any]]) -> Steps[None]:
    known: set[str] = set()
    cursor = None
    for _ in range(PAGES_MAX):
        page = yield ListMemories(
            namespace=namespace,
            memory_type=SAID,
            filters={"metadata.session": session_id},
            limit=PAGE_ITEMS,
            cursor=cursor,
        )
        known |= {memory["key"] for memory in page["memories"]}
        cursor = page["cursor"]
        if cursor is None:
            break
    else:
        raise LimitExceeded(
            f"More than {PAGES_MAX * PAGE_ITEMS:,} memories are of this session; add its newest "
            "events with add_events_to_memory.",
            limit="PAGES_MAX",
            maximum=PAGES_MAX * PAGE_ITEMS,
        )
    yield from _adding(namespace, [draft for draft in drafts if draft["key"] not in known])
    for key in sorted(known - {draft["key"] for draft in drafts}):
        with suppress(NotFound):
            yield DeleteByKey(namespace, key)


def _searching(namespace: str, query: str) -> Steps[SearchMemoryResponse]:
    found = yield Recall(query, RESULTS, namespace=namespace, memory_type=SAID)
    return SearchMemoryResponse(memories=[_entry(memory) for memory in found["results"]])


def _deleting(namespace: str, key: str) -> Steps[None]:
    try:
        yield DeleteByKey(namespace, key)
    except NotFound:
        return
    with suppress(AlreadyExists):
        yield Put(namespace, key, None, GONE, content="deleted", expected_version=0)


def _entry(memory: FoundMemory) -> MemoryEntry:
    value = memory["value"]
    return MemoryEntry(
        id=name_of(memory["key"] or ""),
        content=types.Content.model_validate(unpacked(value["content"])),
        author=value["author"],
        timestamp=value["timestamp"],
        custom_metadata=unpacked(value["custom_metadata"]),
    )
