"""Conversations of other programs: each a session with its turns as events, and as memories.

The events are what was said, word for word and in order; the memories are how it is found again. A
memory under the key of the conversation says which session it is, so that it is known again.
"""

from __future__ import annotations

import hashlib
from typing import Any

from recollect.client import MemoryClient
from recollect.exchange.brought import Brought
from recollect.exchange.items import Conversation, Turn, key_of
from recollect.exchange.known import Known
from recollect.protocol.errors import NotFound, RecollectError, TransportError, Unavailable
from recollect.protocol.records import MemoryRecord

CONVERSATIONS, TURNS = "conversations", "turns"
EVENTS_PAGE = 1000
BATCH_TURNS = 200
BATCH_S = 120.0
TAKES_EVENTS = ("created", "active")


class Conversations:
    """Brings conversations, one at a time."""

    def __init__(self, client: MemoryClient, told: Brought, known: Known, user: str) -> None:
        self._client = client
        self._told = told
        self._known = known
        self._user = user

    def bring(self, talk: Conversation) -> None:
        """Bring a conversation, or what of it is not there yet."""
        marker = self._known.memory(self._told.namespace, talk.key)
        if self._told.dry_run:
            self._would_bring(talk, marker)
            return
        if marker is None:
            session_id = self._begin(talk)
            marker = self._known.memory(self._told.namespace, talk.key)
            assert marker is not None
            self._told.added[CONVERSATIONS] += 1
        else:
            session_id = _session_of(marker)
            self._told.present[CONVERSATIONS] += 1
        try:
            status = self._client.get_session(session_id, events=0)["session"]["session_status"]
        except NotFound:
            message = "Its session was deleted here since it was brought; it was left alone."
            self._told.trouble(talk.where, message, conflict=True)
            return
        new = self._missing(session_id, talk)
        self._append(talk, session_id, status, new)
        self._remember(talk, session_id, marker["id"])

    def _would_bring(self, talk: Conversation, marker: MemoryRecord | None) -> None:
        new = talk.turns if marker is None else self._missing(_session_of(marker), talk)
        (self._told.added if marker is None else self._told.present)[CONVERSATIONS] += 1
        self._told.added[TURNS] += len(new)
        self._told.present[TURNS] += len(talk.turns) - len(new)

    def _begin(self, talk: Conversation) -> str:
        """A new session, and the memory by which it is known again."""
        made = f"{self._told.namespace}\n{talk.key}\n{self._user}"
        digest = hashlib.sha256(made.encode()).hexdigest()[:32]
        told = {"title": talk.title, "imported_from": self._told.source, **talk.metadata}
        if talk.at is not None:
            told["at"] = talk.at
        session_id = self._client.create_session(
            self._user,
            session_metadata=told,
            # If this is broken off here, the same session is given when it is tried again.
            idempotency_key=f"import-{digest}",
        )["session_id"]
        self._client.batch_add_memories(
            [
                {
                    "content": f"Conversation: {talk.title}",
                    "namespace": self._told.namespace,
                    "key": talk.key,
                    "memory_type": "conversation",
                    "value": {"session_id": session_id},
                    "metadata": told,
                    "source": f"import:{self._told.source}",
                    **({"valid_from": talk.at} if talk.at is not None else {}),
                }
            ],
            atomic=True,
        )
        return session_id

    def _missing(self, session_id: str, talk: Conversation) -> list[Turn]:
        """The turns that the session does not have."""
        there: set[Any] = set()
        cursor: str | None = None
        while True:
            try:
                page = self._client.list_events(session_id, limit=EVENTS_PAGE, cursor=cursor)
            except NotFound:
                return talk.turns
            for entry in page["events"]:
                if isinstance(entry["event"], dict):
                    there.add(entry["event"].get("message_id"))
            cursor = page["cursor"]
            if cursor is None:
                return [turn for turn in talk.turns if turn.id not in there]

    def _append(self, talk: Conversation, session_id: str, status: str, turns: list[Turn]) -> None:
        self._told.present[TURNS] += len(talk.turns) - len(turns)
        if not turns:
            return
        if status not in TAKES_EVENTS:
            self._client.update_status(session_id, "active")
        for turn in turns:
            event = {"role": turn.author, "text": turn.text, "message_id": turn.id}
            if turn.at is not None:
                event["at"] = turn.at  # type: ignore[assignment]
            try:
                self._client.append_event(session_id, event)
                self._told.added[TURNS] += 1
            except (TransportError, Unavailable):
                raise
            except RecollectError as error:
                self._told.trouble(f"{talk.where}, message {turn.id}", error.message)
        # It is over, and may yet go on in a later export.
        self._client.update_status(session_id, "paused")

    def _remember(self, talk: Conversation, session_id: str, marker_id: str) -> None:
        """Store the turns as memories of the session, those that are not there yet."""
        self._client.set_session_id(session_id)
        try:
            for start in range(0, len(talk.turns), BATCH_TURNS):
                part = talk.turns[start : start + BATCH_TURNS]
                items = [self._memory(talk, turn, marker_id) for turn in part]
                answer = self._client.batch_add_memories(items, timeout=BATCH_S)
                for turn, result in zip(part, answer["results"], strict=True):
                    if "error" in result and result["error"]["code"] != "already_exists":
                        where = f"{talk.where}, message {turn.id}"
                        self._told.trouble(where, result["error"]["message"])
        finally:
            self._client.set_session_id(None)

    def _memory(self, talk: Conversation, turn: Turn, marker_id: str) -> dict[str, Any]:
        item: dict[str, Any] = {
            "content": turn.text,
            "namespace": self._told.namespace,
            "key": key_of(talk.key, turn.id),
            "memory_type": "episodic",
            "metadata": {"speaker": turn.author, "conversation": talk.title[:200]},
            "parent_id": marker_id,
            "source": f"import:{self._told.source}",
        }
        if turn.at is not None:
            item["valid_from"] = turn.at
        return item


def _session_of(marker: MemoryRecord) -> str:
    value = marker["value"]
    return str(value.get("session_id")) if isinstance(value, dict) else ""
