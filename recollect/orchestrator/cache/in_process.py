"""A cache of bytes in this process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence


class InProcessCache:
    """Least recently used goes first. Touched by one thread alone."""

    def __init__(self, entries_max: int) -> None:
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._entries_max = entries_max
        self.hits = 0
        self.misses = 0

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get_one(key) for key in keys]

    def get_one(self, key: bytes) -> bytes | None:
        """The value of one key."""
        value = self._entries.get(key)
        if value is None:
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return value

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        for key, value in entries.items():
            self.keep_one(key, value)

    def keep_one(self, key: bytes, value: bytes) -> None:
        if self._entries_max <= 0:
            return
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def clear(self) -> bool:
        self._entries.clear()
        return True

    def __len__(self) -> int:
        return len(self._entries)
