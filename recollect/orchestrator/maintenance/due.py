"""Memories that are due to go, found by the moment from which on they are."""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.orchestrator.memories.rows import COLUMNS, MemoryRow
from recollect.orchestrator.storage.interface import Session

Kind = Literal["expired", "deleted", "archived"]

WHERE: dict[Kind, str] = {
    "expired": "expires_us < ? AND deleted_us IS NULL",
    "deleted": "deleted_us < ?",
    "archived": "archived_us < ? AND deleted_us IS NULL",
}
ORDER: dict[Kind, str] = {
    "expired": "expires_us",
    "deleted": "deleted_us",
    "archived": "archived_us",
}
PAGES: dict[Kind, str] = {
    kind: f"SELECT num FROM memories WHERE {WHERE[kind]} ORDER BY {ORDER[kind]} LIMIT ?"
    for kind in WHERE
}
# Read anew in the write: restored meanwhile, it is not due any more.
STILL: dict[Kind, str] = {
    kind: f"SELECT {COLUMNS} FROM memories WHERE num = ? AND {WHERE[kind]}" for kind in WHERE
}
COUNTS: dict[Kind, str] = {kind: f"SELECT count(*) FROM ({PAGES[kind]}) AS due" for kind in WHERE}


class Due(msgspec.Struct, frozen=True):
    """What is due to go, and by when it had to be."""

    kind: Kind
    before_us: int

    def nums(self, limit: int, session: Session) -> list[int]:
        """The numbers of the oldest."""
        return [num for (num,) in session.execute(PAGES[self.kind], (self.before_us, limit))]

    def still(self, session: Session, num: int) -> MemoryRow | None:
        """One of them as it is now; None if it is not due any more."""
        found = session.execute(STILL[self.kind], (num, self.before_us))
        return MemoryRow(*found[0]) if found else None

    def count(self, most: int, session: Session) -> int:
        """How many there are, so many at most."""
        [(count,)] = session.execute(COUNTS[self.kind], (self.before_us, most))
        return int(count)
