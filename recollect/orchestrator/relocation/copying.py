"""The copy itself: every table, compared, then the words, then it is a store.

Each page of rows is one transaction with its bookmark, so what was broken off goes on where it was.
Whether the copy is right is told by reading both sides once more: a table that differs, because its
source was served between two tries, is copied anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from recollect.orchestrator.memories.words_rebuilding import PROPERTY as WORDS_VERSION
from recollect.orchestrator.relocation.bookmarks import (
    Bookmark,
    bookmark,
    claim,
    drop_bookmark,
    put_bookmark,
    unmark,
)
from recollect.orchestrator.relocation.places import Place
from recollect.orchestrator.relocation.side import Side, transaction
from recollect.orchestrator.relocation.tables import PROPERTIES, Checksum, Table, count, pages
from recollect.orchestrator.relocation.words import WORDS, copy_words
from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.properties import SET, STORE_ID
from recollect.orchestrator.storage.sqlite.schema import LEFTOVERS
from recollect.protocol.errors import StorageFailed

OWN_PROPERTIES = frozenset({STORE_ID, LEFTOVERS, WORDS_VERSION})
"""Of one store alone: both may be served from now on, and what they share with others by their name
is not one and the same; and how each keeps its words and its file is its own."""

Report = Callable[[str, int, int], None]
"""Told what is being done, how many rows of it are, and of how many."""


class Copied(msgspec.Struct, frozen=True):
    """One table on both sides."""

    rows: int
    checksum: str


class Relocated(msgspec.Struct, frozen=True):
    """What a copy came to."""

    resumed: bool
    seq: int
    """The last change; readers of the feed go on behind it."""
    rows: int
    tables: dict[str, Copied]


class Relocation:
    """One source on its way into one target."""

    def __init__(self, source: Side, target: Side, report: Report) -> None:
        self._source, self._target = source, target
        self._report = report
        self._tables: list[Table] = []
        self._rows: dict[str, int] = {}

    def run(self, source_place: Place, target_place: Place) -> Relocated:
        """Copy all, or go on with it."""
        self._source.migrate(unfinished=False)
        self._target.migrate(unfinished=True)
        theirs = self._target.tables()
        ours = self._source.tables()
        self._tables = [ours[name] for name in sorted(ours.keys() & theirs.keys())]
        for table in self._tables:
            assert table == theirs[table.name], f"{table.name} differs between the storages"
        resumed = claim(self._target, source_place, target_place)
        self._tables = [table for table in self._tables if table.name != PROPERTIES]
        self._rows = {table.name: count(self._source.session, table) for table in self._tables}
        self._copy_all()
        tables = self._compare_all()
        copy_words(self._target, self._report)
        [(seq,)] = self._source.session.execute("SELECT seq FROM ledger WHERE id = 1")
        self._finish()
        return Relocated(resumed, seq, sum(t.rows for t in tables.values()), tables)

    def _copy_all(self) -> None:
        done, total = 0, sum(self._rows.values())
        for table in self._tables:
            for so_far in self._copy(table):
                self._report(f"Copying {table.name}", done + so_far, total)
            done += self._rows[table.name]

    def _copy(self, table: Table) -> Iterator[int]:
        """Copy what is missing of a table; tells how many rows are there."""
        session = self._target.session
        known = bookmark(session, table.name)
        if known is not None and known.complete:
            return
        if known is None:
            with transaction(session):
                # The migrations themselves have put rows into some.
                session.execute(f"DELETE FROM {table.name}")
                put_bookmark(session, table.name, Bookmark())
            known = Bookmark()
        rows = known.rows
        for page in pages(self._source.session, table, known.after or None):
            rows += len(page)
            with transaction(session):
                self._target.insert(table, page)
                failpoint("copying_rows")
                put_bookmark(session, table.name, Bookmark(table.key_of(page[-1]), rows))
            yield rows
        with transaction(session):
            put_bookmark(session, table.name, Bookmark(rows=rows, complete=True))

    def _compare_all(self) -> dict[str, Copied]:
        done, total = 0, 2 * sum(self._rows.values())
        compared = {}
        for table in self._tables:
            here, there = Checksum(), Checksum()
            for _ in range(2):
                here, there = Checksum(), Checksum()
                for side, checksum in ((self._source, here), (self._target, there)):
                    for page in pages(side.session, table):
                        checksum.take(page)
                        self._report(
                            f"Comparing {table.name}", done + here.rows + there.rows, total
                        )
                if here == there:
                    break
                self._copy_anew(table)
            if here != there:
                raise StorageFailed(
                    f"{table.name} is not the same in the copy: {here.rows} rows with checksum "
                    f"{here}, and {there.rows} with {there}. The copy is not used; try again into "
                    "a new database."
                )
            done += here.rows + there.rows
            compared[table.name] = Copied(here.rows, str(here))
        return compared

    def _copy_anew(self, table: Table) -> None:
        """The source was changed since this table was copied."""
        with transaction(self._target.session):
            drop_bookmark(self._target.session, table.name)
            # Made of texts that may have changed.
            drop_bookmark(self._target.session, WORDS)
        for _ in self._copy(table):
            pass

    def _finish(self) -> None:
        session, lexical = self._target.session, self._target.lexical
        kept = self._source.session.execute(f"SELECT name, value FROM {PROPERTIES}")
        self._target.settle()
        with transaction(session):
            unmark(session)
            for name, value in kept:
                if name not in OWN_PROPERTIES:
                    session.execute(SET, (name, value))
            session.execute(SET, (WORDS_VERSION, lexical.version))
