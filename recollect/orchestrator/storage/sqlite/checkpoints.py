"""Moves the write-ahead log into the database file, beside the writer instead of within a commit.

By itself SQLite does this inside whichever commit finds the log long, and that write waits for all
of it. Here a thread with a connection of its own does it; writers and readers go on meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw
import structlog

log = structlog.get_logger()

PAGES_BEFORE = 2_000  # of the log, before it is moved: 8 MB
# A log that a reader still needs is not begun anew; it is asked for again after as many pages more,
# and from here on by every commit.
PAGES_MAX = 10_000


class Checkpointer:
    """One thread that checkpoints when the log has grown long.

    Under ceaseless writes it never moves all: something is always written meanwhile. Only a log
    that was wholly moved begins anew, so the writer moves what is left, which is little, between
    two of its batches.
    """

    def __init__(self, writer: apsw.Connection, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._due = threading.Event()
        self._closing = False
        # Held while the log is moved. A commit that finds the log too long waits for whoever is at
        # work, because only with the rest moved as well can the log begin anew.
        self._moving = threading.Lock()
        # How long the log was at the last commit, and how long it is when it is moved next.
        self._pages = 0
        self._pages_due = PAGES_BEFORE
        # Set when most of the log was moved; the writer takes it back when it moves the rest.
        self._rest_due = False
        # Having a hook of our own also ends SQLite's checkpoints within commits.
        writer.set_wal_hook(self._committed)
        self._thread = threading.Thread(target=self._run, name="storage-checkpoints", daemon=True)
        self._thread.start()

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:
            self._pages_due = PAGES_BEFORE  # it has begun anew
        self._pages = pages
        if pages >= PAGES_MAX:
            self._checkpoint(connection)
        elif pages >= self._pages_due:
            self._pages_due = pages + PAGES_BEFORE
            self._due.set()
        return apsw.SQLITE_OK

    def move_rest(self, writer: apsw.Connection) -> None:
        """Move what was written while the rest was moved. For the writer, between its batches."""
        if self._rest_due:
            self._rest_due = False
            self._checkpoint(writer)

    def _run(self) -> None:
        connection = self._connect()
        while True:
            self._due.wait()
            self._due.clear()
            if self._closing:
                connection.close()
                return
            self._checkpoint(connection)
            self._rest_due = True

    def _checkpoint(self, connection: apsw.Connection) -> None:
        try:
            with self._moving:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            pass  # another checkpoint is at work
        except apsw.Error as error:
            # The log stays as it is, and the next commit asks again.
            log.warning("The log could not be moved.", action="checkpoint", reason=str(error))

    def move(self, connection: apsw.Connection) -> bool:
        """Move now whatever is committed; whether all of it is in the file."""
        try:
            with self._moving:
                in_log, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            return False
        return bool(0 <= in_log == moved)  # both are negative if there is no log

    def empty(self, connection: apsw.Connection) -> bool:
        """Move everything and leave the log without a byte; False if a reader still needs it.

        The writer waits meanwhile, for as long as the connection waits for readers.
        """
        try:
            with self._moving:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        return True

    def close(self) -> None:
        """Stop; the last connection to close moves what is left."""
        self._closing = True
        self._due.set()
        self._thread.join()
