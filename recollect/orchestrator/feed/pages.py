"""Pages of the journal: changes behind a number, in order, with a bound on what is looked through.

A page says where the next one begins, and that is behind what did not fit as well: nobody looks
through the same entries twice.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from recollect.orchestrator.feed.wanted import Wanted
from recollect.orchestrator.storage.interface import Change, Row, Session
from recollect.orchestrator.storage.journal import FIELDS
from recollect.protocol.errors import ChangesAhead, ChangesGone

STRETCH_ENTRIES = 20_000
STRETCHES_MAX = 5
"""So many stretches of the journal one call looks through, if few entries fit."""
COLUMNS = ", ".join(FIELDS)
ENDS = "SELECT seq, trimmed_seq FROM ledger WHERE id = 1"
IN_STRETCH = f"""
SELECT {COLUMNS} FROM journal WHERE seq > ? AND seq <= ? AND {{condition}} ORDER BY seq LIMIT ?
"""


class Page(msgspec.Struct, frozen=True):
    """What was found behind a number."""

    changes: list[Change]
    next_seq: int
    seq: int

    @property
    def complete(self) -> bool:
        return self.next_seq >= self.seq


def read_page(session: Session, after: int | None, wanted: Wanted, limit: int) -> Page:
    """One page out of the storage; behind the end of the journal if no number is given."""
    [(seq, trimmed_seq)] = session.execute(ENDS)
    if after is None:
        return Page([], seq, seq)
    if after > seq:
        raise ahead(after, seq)
    if after < trimmed_seq:
        raise ChangesGone(
            f"The changes up to {trimmed_seq:,} were trimmed, and you have seen those up to "
            f"{after:,}: read anew what you follow, then go on from {seq:,}.",
            after_seq=after,
            trimmed_seq=trimmed_seq,
            seq=seq,
        )
    condition, params = wanted.condition()
    statement, rows = IN_STRETCH.format(condition=condition), list[Row]()
    for _ in range(STRETCHES_MAX):
        end = min(after + STRETCH_ENTRIES, seq)
        rows += session.execute(statement, (after, end, *params, limit - len(rows)))
        if len(rows) == limit:
            end = rows[-1][0]
            break
        after = end
        if end == seq:
            break
    return Page([Change(*row) for row in rows], end, seq)


def cut_page(changes: Iterable[Change], after: int, seq: int, wanted: Wanted, limit: int) -> Page:
    """One page out of all changes behind a number, which are at hand."""
    found: list[Change] = []
    for change in changes:
        if wanted.fits(change):
            found.append(change)
            if len(found) == limit:
                return Page(found, change.seq, seq)
    return Page(found, max(after, seq), seq)


def ahead(after: int, seq: int) -> ChangesAhead:
    """Why a number is none of this store's."""
    return ChangesAhead(
        f"The last change of this store is {seq:,}, and {after:,} is none of its numbers: it comes "
        "from another store, or this one was restored from a backup. Read anew what you follow, "
        f"then go on from {seq:,}.",
        after_seq=after,
        seq=seq,
    )
