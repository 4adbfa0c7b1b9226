"""An export of ChatGPT: `conversations.json`, in its zip or unpacked.

A conversation is a tree of messages, for every answer that was asked for again is a branch. What
the person saw last is the way from `current_node` up to the root: that is what is brought. Other
branches are left out, and so is what the program said to itself.
"""

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
    "ChatGPT's export is a zip with conversations.json in it: a list of objects, each with a "
    "mapping of messages."
)
SHOWN = {"user", "assistant", "tool"}
DEPTH_MAX = 100_000


def wrote(path: Path) -> bool:
    """Whether a file is such an export."""
    return "mapping" in first_conversation(path)


def read(path: str) -> Items:
    """The conversations of an export."""
    place = conversations_at(Path(path))
    if place is None:
        raise BadFile(path, f"there is no {CONVERSATIONS}.", EXPECTED)
    for number, item in items_in(str(place), CONVERSATIONS, EXPECTED):
        where = f"{place}, conversation {number:,}"
        if not isinstance(item, dict) or not isinstance(item.get("mapping"), dict):
            raise BadFile(where, "it has no mapping of messages.", EXPECTED)
        yield _conversation(where, item)


def _conversation(where: str, item: dict[str, Any]) -> Conversation:
    own_id = item.get("conversation_id") or item.get("id")
    mapping = item["mapping"]
    turns = [turn for node in _path(item, mapping) if (turn := _turn(node)) is not None]
    if not isinstance(own_id, str):
        own_id = key_of(*(turn.id for turn in turns[:1]), str(item.get("create_time")))
    branches = sum(1 for n in mapping.values() if len(_children(n)) > 1)
    told = {"chatgpt_id": own_id, "model": item.get("default_model_slug"), "branches": branches}
    return Conversation(
        key=key_of("chatgpt", own_id),
        title=str(item.get("title") or "Untitled"),
        turns=turns,
        where=where,
        at=moment_of(item.get("create_time")),
        metadata={name: value for name, value in told.items() if value},
    )


def _path(item: dict[str, Any], mapping: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages from the first to the last that was shown."""
    node_id = item.get("current_node")
    if node_id not in mapping:
        # Older exports do not say which branch was shown: the one that goes on last.
        leaves = [i for i, n in mapping.items() if isinstance(n, dict) and not _children(n)]
        node_id = leaves[-1] if leaves else None
    path: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(node_id, str) and node_id not in seen and len(path) < DEPTH_MAX:
        seen.add(node_id)
        node = mapping.get(node_id)
        if not isinstance(node, dict):
            break
        path.append(node)
        node_id = node.get("parent")
    return path[::-1]


def _turn(node: dict[str, Any]) -> Turn | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    author = message.get("author") or {}
    role = author.get("role")
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    text = _text(message.get("content") or {}).strip()
    if role not in SHOWN or hidden or not text or message.get("recipient", "all") != "all":
        return None
    return Turn(
        id=str(message.get("id") or node.get("id")),
        author=str(author.get("name") or role),
        text=text,
        at=moment_of(message.get("create_time")),
    )


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        parts = [content.get("text") or ""]
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        return f"[{part.get('content_type', 'attachment')}]"
    return ""


def _children(node: Any) -> list[Any]:
    children = node.get("children") if isinstance(node, dict) else None
    return children if isinstance(children, list) else []
