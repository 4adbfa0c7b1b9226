"""The latest entry of each name in a namespace, bounded; the one set longest ago makes room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

Place = tuple[str, str]
"""A namespace, or a kind, and a name in it."""


class Latest(Generic[T]):
    """Entries by their place, in the order in which they were set. Touched on the loop only."""

    def __init__(
        self, entries_max: int, bytes_max: int = 0, size_of: Callable[[T], int] = lambda entry: 0
    ) -> None:
        """`bytes_max` bounds the sum of the sizes."""
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._size_of = size_of
        self._bytes = 0
        # Not a plain dict, whose first entry is the slower to find the more were taken out.
        self._entries: OrderedDict[Place, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, place: Place) -> T | None:
        return self._entries.get(place)

    def items(self) -> Iterable[tuple[Place, T]]:
        """The one set longest ago first."""
        return self._entries.items()

    def latest(self) -> Iterator[T]:
        """The one set last first."""
        return reversed(self._entries.values())

    def set(self, place: Place, entry: T) -> None:
        """Set one entry, which makes it the youngest."""
        self.drop(place)
        self._entries[place] = entry
        self._bytes += self._size_of(entry)
        self._trim()

    def take(self) -> T:
        """Take out the one set longest ago."""
        entry = self._entries.popitem(last=False)[1]
        self._bytes -= self._size_of(entry)
        return entry

    def put_back(self, place: Place, entry: T) -> None:
        """Set an entry as the oldest, unless its place has a newer one."""
        if place not in self._entries:
            self._entries[place] = entry
            self._entries.move_to_end(place, last=False)
            self._bytes += self._size_of(entry)
            self._trim()

    def drop(self, place: Place) -> None:
        """Take one entry out, if it is there."""
        before = self._entries.pop(place, None)
        if before is not None:
            self._bytes -= self._size_of(before)

    def _trim(self) -> None:
        while len(self._entries) > self._entries_max or self._bytes > self._bytes_max:
            self.take()
