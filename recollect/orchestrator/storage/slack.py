"""Zeroes the bytes of a database file that belong to nothing any more.

SQLite overwrites what it deletes when told to, but when it moves rows from one page to another,
it leaves their bytes behind in the room between the rows of the old page. There they stay until
something else is written over them, even if the rows themselves are deleted later. Here that room
is found and zeroed, in place: nothing that is stored lies there, so nothing that is stored changes.

The file is read and written through SQLite's own file layer: to open and close it in any other way
would let go of the locks that the whole process has on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

# Of a page that is part of a tree: inner and leaf pages of indexes and of tables.
INNER_KINDS = frozenset((2, 5))
LEAF_KINDS = frozenset((10, 13))
# The other pages begin with the number of a page. In a file of more pages than this such a number
# could be taken for a kind.
PAGES_MAX = 0x02000000 - 1
FILE_HEADER_BYTES = 100
BLOCK_PAGES = 256
FREE_BLOCKS_MAX = 2_048
ZEROS = bytes(65_536)

Span = tuple[int, int]
"""From one place in a page up to another."""


class Unreadable(Exception):
    """The file is not laid out as expected; nothing in it was changed."""


class DatabaseFile:
    """The main file of a database, page by page."""

    def __init__(self, path: Path) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB
        self._file = apsw.VFSFile("", str(path), [flags, 0])
        header = self._file.xRead(FILE_HEADER_BYTES, 0)
        size = int.from_bytes(header[16:18])
        self.page_bytes = 65_536 if size == 1 else size
        self._reserved = header[20]
        if not header.startswith(b"SQLite format 3\0") or self.page_bytes < 512:
            raise Unreadable("it is not a database")
        if self.pages > PAGES_MAX:
            raise Unreadable(f"it has {self.pages:,} pages, more than {PAGES_MAX:,}")

    @property
    def pages(self) -> int:
        return int(self._file.xFileSize()) // self.page_bytes

    def read(self, number: int, count: int = 1) -> bytes:
        """Some pages, the first of which has this number; pages count from 1."""
        found: bytes = self._file.xRead(count * self.page_bytes, (number - 1) * self.page_bytes)
        return found

    def slack(self, number: int, page: bytes) -> list[Span]:
        """What in a page of a tree belongs to nothing and is not zero."""
        start = FILE_HEADER_BYTES if number == 1 else 0
        kind = page[start]
        if kind in LEAF_KINDS:
            pointers = start + 8
        elif kind in INNER_KINDS:
            pointers = start + 12
        else:
            return []
        end = self.page_bytes - self._reserved
        cells = int.from_bytes(page[start + 3 : start + 5])
        content = int.from_bytes(page[start + 5 : start + 7]) or 65_536
        gap = (pointers + 2 * cells, content)
        if not gap[0] <= gap[1] <= end:
            return []  # caught while it was written: it is looked at again
        spans = [gap]
        block = int.from_bytes(page[start + 1 : start + 3])
        for _ in range(FREE_BLOCKS_MAX):
            if not content <= block <= end - 4:
                break
            size = int.from_bytes(page[block + 2 : block + 4])
            if not 4 <= size <= end - block:
                break
            spans.append((block + 4, block + size))
            block = int.from_bytes(page[block : block + 2])
        return [(a, b) for a, b in spans if a < b and page[a:b] != ZEROS[: b - a]]

    def soiled(self, go_on: Callable[[], bool]) -> set[int]:
        """The pages of trees with something left between their rows; stops when told to."""
        found: set[int] = set()
        size = self.page_bytes
        for first in range(1, self.pages + 1, BLOCK_PAGES):
            if not go_on():
                break
            block = self.read(first, min(BLOCK_PAGES, self.pages + 1 - first))
            for place in range(len(block) // size):
                page = block[place * size : (place + 1) * size]
                if self.slack(first + place, page):
                    found.add(first + place)
        return found

    def wipe(self, number: int, spans: list[Span]) -> None:
        """Zero parts of a page."""
        for start, end in spans:
            self._file.xWrite(ZEROS[: end - start], (number - 1) * self.page_bytes + start)

    def free_pages(self) -> Iterator[tuple[int, list[Span]]]:
        """The pages that wait to be used again, with what in them is neither zero nor needed."""
        trunk = int.from_bytes(self.read(1)[32:36])
        seen = 0
        while trunk and seen <= self.pages:
            page = self.read(trunk)
            count = int.from_bytes(page[4:8])
            listed = 8 + 4 * count
            if listed > self.page_bytes:
                return
            if page[listed:] != ZEROS[: self.page_bytes - listed]:
                yield trunk, [(listed, self.page_bytes)]
            for place in range(8, listed, 4):
                leaf = int.from_bytes(page[place : place + 4])
                if leaf <= self.pages and self.read(leaf) != ZEROS[: self.page_bytes]:
                    yield leaf, [(0, self.page_bytes)]
            seen += 1 + count
            trunk = int.from_bytes(page[:4])

    def sync(self) -> None:
        """Have what was written on the disk."""
        self._file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        self._file.xClose()


def wipe_slack(
    path: Path,
    writer: apsw.Connection,
    checkpoint: Callable[[], bool],
    go_on: Callable[[], bool],
) -> int | None:
    """Zero what lies between the rows; how many pages that changed, or None if it must wait.

    `writer` is a connection of its own for this, and `checkpoint` says whether all that is
    committed is in the file now.
    """
    with contextlib.closing(DatabaseFile(path)) as file:
        # Most of the work is to look, and others write meanwhile. What they move about is what
        # lives; to be sure of the rest, the caller looks again.
        soiled = file.soiled(go_on)
        writer.execute("BEGIN IMMEDIATE")
        try:
            # With this lock held nobody writes, so with the log moved the file is all there is.
            if not go_on() or not checkpoint():
                return None
            wiped = 0
            for number in sorted(soiled):
                if number <= file.pages and (spans := file.slack(number, file.read(number))):
                    file.wipe(number, spans)
                    wiped += 1
            for number, spans in file.free_pages():
                file.wipe(number, spans)
                wiped += 1
            if not wiped:
                return 0
            file.sync()
            # Connections keep pages in memory, and one that writes such a page would bring back
            # what was wiped. They read them anew after a commit that is not their own.
            [(version,)] = writer.execute("PRAGMA user_version").fetchall()
            writer.execute(f"PRAGMA user_version = {int(version) + 1 & 0x7FFFFFFF}")
            writer.execute("COMMIT")
            return wiped
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
