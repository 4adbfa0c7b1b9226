"""A cache whose entries differ much in size: bounded by their number and by what they weigh."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeighedCache(Generic[K, V]):
    """Least recently used goes first. Any thread may use it."""

    def __init__(self, *, entries_max: int, weight_max: int) -> None:
        self._entries_max = entries_max
        self._weight_max = weight_max
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: K) -> V | None:
        """A value, if it is kept; it is then the one used last."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V, weight: int) -> None:
        """Keep a value in the place of an older one, unless it is too heavy to be kept at all."""
        with self._lock:
            before = self._entries.pop(key, None)
            if before is not None:
                self._weight -= before[1]
            if weight > self._weight_max:
                return
            self._entries[key] = (value, weight)
            self._weight += weight
            while len(self._entries) > self._entries_max or self._weight > self._weight_max:
                _, (_, lost) = self._entries.popitem(last=False)
                self._weight -= lost
