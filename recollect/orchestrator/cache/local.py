"""A bounded cache in the process, safe against a slow reader that brings back old news.

Its entries are bounded by their number and by what they weigh together.
A reader asks for a ticket before it reads; if anything was dropped since, its find may be stale and
is not kept.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class LocalCache(Generic[V]):
    """Least recently used goes first. Touched by the event loop's thread alone."""

    def __init__(self, entries_max: int, weight_max: float = math.inf) -> None:
        self._entries: OrderedDict[str, V] = OrderedDict()
        self.peek: Callable[[str], V | None] = self._entries.get
        """A value if it is there, without counting that as a use."""
        # Apart from the entries, so that a hit pays nothing for it.
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._entries_max = entries_max
        self._weight_max = weight_max
        self._drops = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: str) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return entry

    def ticket(self) -> int:
        """Take this before reading what is to be kept."""
        return self._drops

    def keep(self, key: str, value: V, ticket: int, weight: int = 1) -> None:
        """Keep a value that was read after the ticket was taken, unless something changed since."""
        if ticket != self._drops:
            return
        self._weight += weight - self._weights.get(key, 0)
        self._weights[key] = weight
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max or self._weight > self._weight_max:
            lost, _ = self._entries.popitem(last=False)
            self._weight -= self._weights.pop(lost)

    def drop(self, key: str) -> None:
        """Forget a value because it changed."""
        self._drops += 1
        if self._entries.pop(key, None) is not None:
            self._weight -= self._weights.pop(key)

    def __len__(self) -> int:
        return len(self._entries)
