"""Leaves nothing of deleted rows in a database file or in its log, while others use both."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from recollect.orchestrator.storage.sqlite.checkpoints import Checkpointer
from recollect.orchestrator.storage.sqlite.slack import Wiping

ROUNDS_MAX = 3  # one that wipes, one that looks again, and one more under ceaseless writes
TRIES_MAX = 50
PAUSE_S = 0.03
PAUSE_S_MAX = 1.0
BUSY_MS = 100  # for readers; the writer waits as well


def scrub(
    path: Path,
    connect: Callable[[], apsw.Connection],
    checkpointer: Checkpointer,
    closing: threading.Event,
) -> bool:
    """Wipe what belongs to nothing any more and empty the log; whether both were done before the
    storage closed."""
    with contextlib.closing(connect()) as writer, contextlib.closing(connect()) as mover:
        mover.set_busy_timeout(BUSY_MS)
        wiping = Wiping(
            path,
            writer,
            moved=lambda: checkpointer.move(mover),
            go_on=lambda: not closing.is_set(),
            pause=closing.wait,
        )
        return _wipe(wiping) and _empty_log(mover, checkpointer, closing)


def _wipe(wiping: Wiping) -> bool:
    for _ in range(ROUNDS_MAX):
        wiped = wiping.once(TRIES_MAX)
        if wiped is None:
            return False
        if wiped == 0:
            break
    # Whatever the last look still found was left there by rows that moved since: it is of what
    # lives, for what is deleted was overwritten before the first look.
    return True


def _empty_log(
    mover: apsw.Connection, checkpointer: Checkpointer, closing: threading.Event
) -> bool:
    pause_s = PAUSE_S
    for _ in range(TRIES_MAX):
        if closing.is_set():
            return False
        if checkpointer.empty(mover):
            return True
        closing.wait(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)
    return False
