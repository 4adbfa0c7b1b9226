"""What a cache of bytes offers: what was kept may be gone at any time, and is never the only copy.

A key says all that its value depends on, so that what is found is always right. Nothing here fails:
what cannot be reached is a miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class ByteCache(Protocol):
    """Values by their keys, bounded."""

    hits: int
    misses: int

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, None where there is none."""
        ...

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep some values; others may make room."""
        ...

    def clear(self) -> bool:
        """Forget everything; whether that is done already."""
        ...
