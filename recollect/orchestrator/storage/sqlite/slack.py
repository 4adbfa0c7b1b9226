"""Zeroes the bytes of a database file that belong to nothing any more.

SQLite overwrites what it deletes when told to, but when it moves rows from one page to another,
it leaves their bytes behind in the room between the rows of the old page. There they stay until
something else is written over them, even if the rows themselves are deleted later. Here that room
is found and zeroed, in place: nothing that is stored lies there, so nothing that is stored changes.

Why that is safe:

- It is done with the lock that writers take, and only when the whole log has been moved into the
  file. The log is moved past no reader that still needs what was before. So there is one state of
  the file, everybody who reads sees that one, and nobody changes it.
- A page is touched only if its rows, its free blocks and the header account for every byte of it,
  as SQLite's own integrity check demands, and then only between them. Pages that are not part of a
  tree begin with a number that cannot be taken for the kind of one that is.
- Only whoever moves the log writes to the file, and there is nothing left to be moved, neither for
  another process. So no page changes between the look at it and the zeros.
- A crash leaves some of it zeroed and some not, also when a page reaches the disk in pieces: any
  mix of before and after holds the same rows. Of the bytes beside it no more is asked than that
  they outlive a write next to them, and SQLite's own log asks the same at each commit.
- Connections keep pages in memory, and one that writes such a page would bring back what was wiped.
  They read them anew after a commit that is not their own, so each step ends with one. What the log
  still holds of a page comes back as little: whoever begins after it was moved reads the file.

Free pages need none of this: SQLite zeroes them as it frees them, when told to overwrite at all.

The file is read and written through SQLite's own file layer: to open and close it in any other way
would let go of the locks that the whole process has on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import apsw

from recollect.orchestrator.running.failpoints import failpoint
from recollect.orchestrator.storage.sqlite.pages import (
    FILE_HEADER_BYTES,
    KINDS,
    PAGES_MAX,
    Misfit,
    Span,
    check_header,
    loose_spans,
    unused_spans,
)

# The page before it holds the file's header and the names of the tables, never a row of them.
FIRST_PAGE = 2
BLOCK_PAGES = 256  # read at once
STEP_PAGES = 128  # wiped at once; writers wait meanwhile
STEP_PAUSE_S = 0.03
STEP_PAUSE_S_MAX = 1.0  # when readers do not let go of the log
READERS_TRIES_MAX = 20  # and meanwhile
READERS_PAUSE_S = 0.005
LOCK_BYTE = 0x40000000  # the page with this byte is never used
ZEROS = bytes(65_536)


class DatabaseFile:
    """The main file of a database, page by page."""

    def __init__(self, path: Path) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB
        self._file = apsw.VFSFile("", str(path), [flags, 0])
        try:
            size = int(self._file.xFileSize())
            self.page_bytes = check_header(self._file.xRead(FILE_HEADER_BYTES, 0), size)
        except BaseException:
            self._file.xClose()
            raise
        self._unused = LOCK_BYTE // self.page_bytes + 1

    @property
    def pages(self) -> int:
        return int(self._file.xFileSize()) // self.page_bytes

    def read(self, number: int, count: int = 1) -> bytes:
        """Some pages, the first of which has this number; pages count from 1."""
        found: bytes = self._file.xRead(count * self.page_bytes, (number - 1) * self.page_bytes)
        return found

    def soiled(self, go_on: Callable[[], bool]) -> set[int]:
        """The pages that seem to hold something that is left over; stops when told to.

        Only a hint: others may write meanwhile.
        """
        found: set[int] = set()
        size, last = self.page_bytes, self.pages
        for first in range(FIRST_PAGE, last + 1, BLOCK_PAGES):
            if not go_on():
                break
            block = self.read(first, min(BLOCK_PAGES, last + 1 - first))
            for place in range(len(block) // size):
                page = block[place * size : (place + 1) * size]
                number = first + place
                if number != self._unused and any(_filled(page, loose_spans(number, page))):
                    found.add(number)
        return found

    def wipe(self, numbers: Iterable[int]) -> int:
        """Zero what is left over in some pages; how many of them that changed.

        The caller sees to it that the file holds everything and nobody writes.
        """
        last = self.pages
        if last > PAGES_MAX:
            raise Misfit(f"it has more than {PAGES_MAX:,} pages")
        wiped = 0
        for number in numbers:
            if not FIRST_PAGE <= number <= last or number == self._unused:
                continue
            page = self.read(number)
            if page[0] not in KINDS:
                continue
            filled = list(_filled(page, unused_spans(number, page)))
            for start, end in filled:
                self._file.xWrite(ZEROS[: end - start], (number - 1) * self.page_bytes + start)
                failpoint("while_scrubbing")
            wiped += bool(filled)
        return wiped

    def sync(self) -> None:
        """Have what was written on the disk."""
        self._file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        self._file.xClose()


def _filled(page: bytes, spans: Iterable[Span]) -> Iterator[Span]:
    """Those parts that are not zero."""
    for start, end in spans:
        if start < end and page[start:end] != ZEROS[: end - start]:
            yield start, end


class Wiping:
    """Goes through a database file and zeroes what is left over, a bounded step at a time."""

    def __init__(
        self,
        path: Path,
        writer: apsw.Connection,
        moved: Callable[[], bool],
        go_on: Callable[[], bool],
        pause: Callable[[float], object],
    ) -> None:
        """`writer` is a connection of its own for this, `moved` moves the log and says whether all
        that is committed is in the file now, and `pause` lets others write."""
        self._path, self._writer = path, writer
        self._moved, self._go_on, self._pause = moved, go_on, pause
        # Whether others may have in memory what is wiped in the file. Somebody may have wiped it
        # before and failed then, so it is not known from the start.
        self._remembered = True

    def once(self, tries_max: int) -> int | None:
        """Look at every page, and wipe; how many pages that changed, None if it was given up."""
        if not self._in_file(tries_max):
            return None
        with contextlib.closing(DatabaseFile(self._path)) as file:
            soiled = sorted(file.soiled(self._go_on))
            wiped = 0
            for start in range(0, len(soiled) or int(self._remembered), STEP_PAGES):
                changed = self._insist(tries_max, file, soiled[start : start + STEP_PAGES])
                if changed is None:
                    return None
                wiped += changed
                self._pause(STEP_PAUSE_S)
            return wiped if self._go_on() else None

    def _insist(self, tries_max: int, file: DatabaseFile, numbers: list[int]) -> int | None:
        """Wipe some pages as soon as readers let it; None if they do not."""
        pause_s = STEP_PAUSE_S
        for _ in range(tries_max):
            if not self._go_on():
                return None
            changed = self._step(file, numbers)
            if changed is not None:
                return changed
            # Writers have waited as well.
            self._pause(pause_s)
            pause_s = min(2 * pause_s, STEP_PAUSE_S_MAX)
        return None

    def _in_file(self, tries_max: int) -> bool:
        """Have the log moved: only then is the file worth looking at."""
        for _ in range(tries_max):
            if not self._go_on():
                return False
            if self._moved():
                return True
            self._pause(STEP_PAUSE_S)
        return False

    def _step(self, file: DatabaseFile, numbers: list[int]) -> int | None:
        """Wipe some pages; None if a reader still needs the log."""
        self._moved()  # most of it, before writers have to wait
        writer = self._writer
        writer.execute("BEGIN IMMEDIATE")
        try:
            if not self._all_moved():
                return None
            wiped = file.wipe(numbers)
            if wiped or self._remembered:
                self._remembered = True
                file.sync()
                self._count_up()
                writer.execute("COMMIT")
                self._remembered = False
            return wiped
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")

    def _all_moved(self) -> bool:
        """Move the log while nobody writes; those who read what was before are waited for, and
        whoever comes now reads what is there now."""
        for _ in range(READERS_TRIES_MAX):
            if self._moved():
                return True
            self._pause(READERS_PAUSE_S)
        return False

    def _count_up(self) -> None:
        """Change a number in the file's header that means nothing to anybody."""
        [[version]] = self._writer.execute("PRAGMA user_version").fetchall()
        assert isinstance(version, int)
        self._writer.execute(f"PRAGMA user_version = {version + 1 & 0x7FFFFFFF}")
