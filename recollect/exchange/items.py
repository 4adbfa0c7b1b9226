"""What other programs have remembered, as it is brought here: facts, links and conversations.

Each has a name made from the ids of where it comes from. Under that name it is stored, and by that
name it is known again, however long ago it was brought.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec

KEY_CHARS_MAX = 200
_RESERVED = re.compile(r"[%:\s\x00]")


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was remembered."""

    key: str
    content: str
    where: str
    """Where in the file it is, for messages."""
    memory_type: str = "general"
    value: Any = None
    metadata: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    valid_from: str | float | None = None
    expires_at: str | float | None = None
    below: tuple[str, ...] = ()
    """Parts of a namespace below the one that everything is brought into."""
    parent_key: str | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One fact has to do with another."""

    source_key: str
    target_key: str
    relationship_type: str
    where: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said in a conversation."""

    id: str
    author: str
    text: str
    at: str | float | None = None


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation with all its turns."""

    key: str
    title: str
    turns: list[Turn]
    where: str
    at: str | float | None = None
    metadata: dict[str, Any] = {}


Item = Fact | Link | Conversation
Items = Iterator[Item]


def key_of(*parts: str) -> str:
    """A key from the ids of the source; a long one ends in a digest of all of it."""
    key = "/".join(part.replace("\x00", "") for part in parts)
    if len(key) <= KEY_CHARS_MAX:
        return key
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{key[: KEY_CHARS_MAX - 33]}-{digest}"


def part_of(name: str) -> str:
    """A name as a part of a namespace: what has no place in one is percent-encoded."""
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), name) or "%00"


def moment_of(value: Any) -> str | float | None:
    """A moment if it is one that can be stored: seconds since 1970, or ISO 8601 text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if 0 <= value < 1e10 else None
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return str(value)


def text_of(value: Any) -> str:
    """A value as text to be found by: the text in it, or its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in ("text", "content", "memory", "data", "fact"):
            if isinstance(value.get(name), str) and value[name].strip():
                return str(value[name])
    return msgspec.json.encode(value).decode()
