"""An export of Claude: `conversations.json`, in its zip or unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.exchange.importers.looking import (
    CONVERSATIONS,
    conversations_at,
    first_conversation,
)
from recollect.exchange.items import Conversation, Items, Turn, key_of, moment_of
from recollect.exchange.json_items import items_in
from recollect.exchange.problems import BadFile

EXPECTED = (
    "Claude's export is a zip with conversations.json in it: a list of objects, each with a uuid "
    "and chat_messages."
)
AUTHORS = {"human": "user"}


def wrote(path: Path) -> bool:
    """Whether a file is such an export."""
    return "chat_messages" in first_conversation(path)


def read(path: str) -> Items:
    """The conversations of an export."""
    place = conversations_at(Path(path))
    if place is None:
        raise BadFile(path, f"there is no {CONVERSATIONS}.", EXPECTED)
    for number, item in items_in(str(place), CONVERSATIONS, EXPECTED):
        where = f"{place}, conversation {number:,}"
        messages = item.get("chat_messages") if isinstance(item, dict) else None
        if not isinstance(messages, list) or not isinstance(item.get("uuid"), str):
            raise BadFile(where, "it has no uuid, or no chat_messages.", EXPECTED)
        turns = [turn for n, m in enumerate(messages) if (turn := _turn(n, m)) is not None]
        yield Conversation(
            key=key_of("claude", item["uuid"]),
            title=str(item.get("name") or "Untitled"),
            turns=turns,
            where=where,
            at=moment_of(item.get("created_at")),
            metadata={"claude_id": item["uuid"]},
        )


def _turn(place: int, message: Any) -> Turn | None:
    if not isinstance(message, dict):
        return None
    text = _text(message).strip()
    names = [name for part in ("attachments", "files") for name in _names(message.get(part))]
    if names:
        text = f"{text}\n[attached: {', '.join(names)}]".strip()
    if not text:
        return None
    sender = str(message.get("sender") or "unknown")
    return Turn(
        id=str(message.get("uuid") or place),
        author=AUTHORS.get(sender, sender),
        text=text,
        at=moment_of(message.get("created_at")),
    )


def _text(message: dict[str, Any]) -> str:
    parts = message.get("content")
    if isinstance(parts, list):
        texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
        if any(texts):
            return "\n".join(filter(None, texts))
    return str(message.get("text") or "")


def _names(files: Any) -> list[str]:
    if not isinstance(files, list):
        return []
    return [str(f["file_name"]) for f in files if isinstance(f, dict) and f.get("file_name")]
