"""Items of LangGraph's stores as memories, and back.

An item is a memory under a key: its value is the item's value, and the text of the fields that are
to be searched is the content. Namespaces are below one root, each label a part.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from recollect.integrations.langgraph_filters import mirrored
from recollect.integrations.names import key_of, name_of, names_below, namespace_of
from recollect.protocol.operations import Put, UpdateMemory
from recollect.protocol.records import MemoryRecord

SEARCHED = "store.item"
"""The type of items that are found by their meaning."""
UNSEARCHED = "store.item.unsearched"
WHOLE = "$"
CONTENT_CHARS_MAX = 200_000
# Decay never archives what is this important: a store does not lose what was put into it.
IMPORTANCE = 0.9
REFRESH_SHARE = 0.05
"""A read moves the end of an item only if so much of its lifetime is gone: each move is a write."""


class Items:
    """Turns items into memories below one root, and memories into items."""

    def __init__(self, root: str, fields: list[str] | None, clock: Callable[[], float]) -> None:
        self.root = root
        self._fields = fields or [WHOLE]
        self._clock = clock

    def namespace(self, labels: tuple[str, ...]) -> str:
        """The namespace of items with these labels."""
        return namespace_of(self.root, labels)

    def labels(self, namespace: str) -> tuple[str, ...]:
        """The labels of the items in a namespace."""
        return names_below(self.root, namespace)

    def place(self, labels: tuple[str, ...], key: str) -> tuple[str, str]:
        """The namespace and the key of an item."""
        return self.namespace(labels), key_of(key)

    def put(self, op: PutOp, value: dict[str, Any]) -> Put:
        """The operation that stores an item."""
        namespace, key = self.place(op.namespace, op.key)
        content, searched = self._content(op, value)
        metadata = mirrored(value)
        expires_at = None
        if op.ttl is not None:
            metadata["ttl_minutes"] = op.ttl
            expires_at = self._clock() + op.ttl * 60
        return Put(
            namespace,
            key,
            value,
            SEARCHED if searched else UNSEARCHED,
            metadata,
            content=content,
            memory_tier="long",
            importance=IMPORTANCE,
            expires_at=expires_at,
        )

    def _content(self, op: PutOp, value: dict[str, Any]) -> tuple[str | None, bool]:
        """The text to find an item by, None if Recollect makes it of the whole value; and whether
        it is to be found at all."""
        if op.index is not False:
            fields = self._fields if op.index is None else op.index
            if WHOLE in fields:
                return None, True
            texts = [text for field in fields for text in get_text_at_path(value, field)]
            content = "\n".join(texts)[:CONTENT_CHARS_MAX]
            if content.strip():
                return content, True
        # A memory has a text, and the name of an item is one.
        return op.key if op.key.strip() and "\x00" not in op.key else "item", False

    def refreshed(self, memory: MemoryRecord) -> UpdateMemory | None:
        """The operation that lets an item live on from now; None if that is not needed."""
        ttl_minutes = memory["metadata"].get("ttl_minutes")
        if ttl_minutes is None or memory["expires_at"] is None:
            return None
        lifetime_s = ttl_minutes * 60
        ends_at_s = datetime.fromisoformat(memory["expires_at"]).timestamp()
        will_end_at_s = self._clock() + lifetime_s
        if will_end_at_s - ends_at_s < lifetime_s * REFRESH_SHARE:
            return None
        change = {
            "expires_at": will_end_at_s,
            # The change makes a version, and would pass for a put.
            "metadata_patch": {"written_at": _written_at(memory)},
        }
        # Whoever changes it in between says anew how long it lives.
        return UpdateMemory(memory["id"], change, expected_version=memory["version"])

    def item(self, memory: MemoryRecord) -> Item:
        """The item that a memory is."""
        return Item(
            value=memory["value"],
            key=name_of(memory["key"] or ""),
            namespace=self.labels(memory["namespace"]),
            created_at=datetime.fromisoformat(memory["created_at"]),
            updated_at=datetime.fromisoformat(_written_at(memory)),
        )

    def search_item(self, memory: MemoryRecord, score: float | None) -> SearchItem:
        """The same with how near it is to what was asked; None if that is not known."""
        item = self.item(memory)
        return SearchItem(
            item.namespace, item.key, item.value, item.created_at, item.updated_at, score
        )


def is_item(memory: MemoryRecord) -> bool:
    """Whether a memory was stored as an item."""
    return memory["memory_type"] in (SEARCHED, UNSEARCHED) and memory["key"] is not None


def _written_at(memory: MemoryRecord) -> str:
    written_at: str = memory["metadata"].get("written_at") or memory["updated_at"]
    return written_at
