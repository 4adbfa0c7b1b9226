"""What is there already under a key, asked for once."""

from __future__ import annotations

from recollect.client import MemoryClient
from recollect.protocol.errors import NotFound
from recollect.protocol.records import MemoryRecord

IDS_MAX = 100_000


class Known:
    """Ids of memories by namespace and key. Only so many are kept; the rest are asked for again."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self._ids: dict[tuple[str, str], str] = {}

    def note(self, namespace: str, key: str, memory_id: str) -> None:
        """Remember what was just stored."""
        if len(self._ids) >= IDS_MAX:
            self._ids.clear()
        self._ids[namespace, key] = memory_id

    def id(self, namespace: str, key: str) -> str | None:
        """The id of the memory under a key."""
        known = self._ids.get((namespace, key))
        if known is None and (memory := self.memory(namespace, key)) is not None:
            known = memory["id"]
        return known

    def content(self, namespace: str, key: str) -> str | None:
        """What the memory under a key says."""
        memory = self.memory(namespace, key)
        return None if memory is None else memory["content"]

    def memory(self, namespace: str, key: str) -> MemoryRecord | None:
        """The memory under a key as it is now."""
        try:
            memory = self._client.get_by_key(namespace, key)["memory"]
        except NotFound:
            return None
        self.note(namespace, key, memory["id"])
        return memory
