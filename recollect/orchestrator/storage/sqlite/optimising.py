"""What a database file needs from time to time: fresh statistics, and a short write-ahead log.

Room that deleted rows left within the file is not given back, since new rows use it; for that all
of the file would have to be written anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import apsw

from recollect.orchestrator.storage.sqlite.checkpoints import Checkpointer

ANALYSED_ROWS = 1_000
"""Of an index, at most: so that nobody's write waits for long."""
BUSY_MS = 100  # for readers; the writer waits as well


def optimise(connect: Callable[[], apsw.Connection], checkpointer: Checkpointer) -> int:
    """See to a database that others read and write meanwhile; the bytes that are free within it."""
    with contextlib.closing(connect()) as connection:
        connection.pragma("analysis_limit", ANALYSED_ROWS)
        # Also tables that this connection has not asked about.
        connection.execute("PRAGMA optimize(0x10002)").fetchall()
        # Most of the log is moved while others go on, so that only the rest holds up the writer.
        checkpointer.move(connection)
        connection.set_busy_timeout(BUSY_MS)
        checkpointer.empty(connection)
        free = connection.pragma("freelist_count")
        return int(free) * int(connection.pragma("page_size"))
