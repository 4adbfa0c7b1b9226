"""What an answer shows of a memory: all of it, or only the fields that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from recollect.orchestrator.memories.rows import CachedMemory, MemoryRow, record_of, with_strength
from recollect.protocol.errors import InvalidArgument
from recollect.protocol.records import MemoryRecord

FIELDS = tuple(MemoryRecord.__annotations__)
# These change by the moment and by every read, and are made only if they are asked for.
FADING = frozenset({"strength", "stability_s", "access_count", "last_accessed_at", "fades_at"})
CHOICES_KEPT_MAX = 256

Record = dict[str, Any]


class Whole:
    """All fields."""

    def of_row(self, row: MemoryRow, now_us: int) -> Record:
        """The record of a row, which the caller may add to."""
        return record_of(row, now_us)  # type: ignore[return-value]

    def of_cached(self, memory: CachedMemory, now_us: int) -> Record:
        """The same of a row near at hand."""
        return with_strength(memory.lasting, memory.row, now_us)  # type: ignore[return-value]


class Chosen(Whole):
    """The id and some other fields."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(dict.fromkeys(("id", *names)))
        self._lasts = FADING.isdisjoint(self._names)

    def of_row(self, row: MemoryRow, now_us: int) -> Record:
        whole = super().of_row(row, now_us)
        return {name: whole[name] for name in self._names}

    def of_cached(self, memory: CachedMemory, now_us: int) -> Record:
        whole: Record = (
            memory.lasting if self._lasts else super().of_cached(memory, now_us)  # type: ignore[assignment]
        )
        return {name: whole[name] for name in self._names}


WHOLE = Whole()


def shown(fields: Sequence[str] | None) -> Whole:
    """How memories are shown to who asks for these fields, or for all of them."""
    if fields is None:
        return WHOLE
    if len(fields) > len(FIELDS):
        raise InvalidArgument(
            f"fields names {len(fields):,} fields; a memory has {len(FIELDS)}.", field="fields"
        )
    return _chosen(tuple(fields))


@lru_cache(CHOICES_KEPT_MAX)
def _chosen(names: tuple[str, ...]) -> Chosen:
    for name in names:
        if name not in FIELDS:
            raise InvalidArgument(
                f"A memory has no field {name[:64]!r}: name some of {', '.join(FIELDS)}; or leave "
                "fields out to see them all.",
                field="fields",
            )
    return Chosen(names)
