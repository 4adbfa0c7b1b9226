"""How a conflict is settled: which memory stays or is written, and which are archived for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from recollect.orchestrator.consolidation.conflicts import Conflict
from recollect.orchestrator.consolidation.judging import DUPLICATE
from recollect.orchestrator.memories.rows import SELECT_BY_NUM, MemoryRow, with_snapshot
from recollect.orchestrator.storage.interface import Session

Strategy = Literal["keep_latest", "keep_most_trusted", "merge", "llm_based"]

CHANGED = "one of its memories was changed meanwhile"
ACROSS = "its memories lie in different namespaces"
KEYED = "one of its memories has a key, and is only changed by that"
UNFOUND = "what was written could not be found by a search"
SECRET = "it holds what looks like a secret, and trust.secrets refuses those"
TOO_LONG = "together they are longer than limits.content_chars_max"

# From the newest back to where a memory began to say what it says now.
VERSIONS = """
SELECT snapshot FROM versions WHERE num = ? AND version < ? ORDER BY version DESC LIMIT ?
"""
VERSIONS_READ_MAX = 100


class Side(msgspec.Struct, frozen=True):
    """A memory of a conflict, and since when it says what it says."""

    row: MemoryRow
    said_us: int


class Settlement(msgspec.Struct, frozen=True):
    """What is to be done about a conflict."""

    conflict: Conflict
    kept: MemoryRow | None = None
    """The memory that stays, or None if one is to be written."""
    sources: tuple[MemoryRow, ...] = ()
    """All that a memory is to be written from, the one that counts most first."""
    archived: tuple[MemoryRow, ...] = ()
    content: str = ""
    skipped: str | None = None
    """Why nothing is to be done."""

    @property
    def writes(self) -> bool:
        return self.skipped is None and self.kept is None

    @property
    def shrinks_by(self) -> int:
        """By how many memories there will be fewer."""
        return 0 if self.skipped is not None else len(self.archived) - self.writes


def sides_of(session: Session, conflict: Conflict) -> list[Side] | None:
    """The memories of a conflict as they are now; None if one has changed since it was seen."""
    sides = []
    for member in conflict.members:
        found = session.execute(SELECT_BY_NUM, (member.num,))
        if not found or (row := MemoryRow(*found[0])).version != member.version:
            return None
        sides.append(Side(row, _said_us(session, row)))
    return sides


def _said_us(session: Session, row: MemoryRow) -> int:
    """Since when a memory says what it says; a change of its tags is not news."""
    if row.valid_from_us is not None:
        return row.valid_from_us
    since_us = row.updated_us
    for (snapshot,) in session.execute(VERSIONS, (row.num, row.version, VERSIONS_READ_MAX)):
        was = with_snapshot(row, snapshot)
        if (was.content, was.value) != (row.content, row.value):
            break
        since_us = was.updated_us
    return since_us


def settle(conflict: Conflict, sides: Sequence[Side] | None, strategy: Strategy) -> Settlement:
    """What a strategy makes of a conflict; the text of what is to be written comes later."""
    if sides is None:
        return Settlement(conflict, skipped=CHANGED)
    if not conflict.settleable:
        return Settlement(conflict, skipped=ACROSS)
    ranked = sorted(sides, key=_trusted if strategy == "keep_most_trusted" else _latest)
    rows = [side.row for side in ranked]
    keyed = [row for row in rows if row.key is not None]
    # What a key holds already says it all, if the others only repeat it.
    if keyed and conflict.kind == DUPLICATE:
        return _kept(conflict, rows, keyed[0])
    if strategy in ("keep_latest", "keep_most_trusted"):
        return _kept(conflict, rows, rows[0])
    if keyed:
        return Settlement(conflict, skipped=KEYED)
    bound = conflict.bound_to(rows[0].num) | {rows[0].num}
    sources = tuple(row for row in rows if row.num in bound)
    return Settlement(conflict, sources=sources, archived=sources)


def _kept(conflict: Conflict, rows: Sequence[MemoryRow], kept: MemoryRow) -> Settlement:
    bound = conflict.bound_to(kept.num)
    archived = tuple(row for row in rows if row.num in bound)
    if any(row.key is not None for row in archived):
        return Settlement(conflict, skipped=KEYED)
    return Settlement(conflict, kept=kept, archived=archived, content=kept.content)


def _latest(side: Side) -> tuple[int, int]:
    return (-side.said_us, -side.row.num)


def _trusted(side: Side) -> tuple[float, int, int]:
    return (-side.row.trust, *_latest(side))
