"""How often each promise is tried: the short counts, or with FULL=1 the full ones."""

from __future__ import annotations

import os

from tests.harness.storages import SQLITE

FULL = os.environ.get("FULL", "") not in ("", "0")

ALONE = FULL or "FAULTS_REPORT" in os.environ
"""Whether nothing else is tested beside, so that what is measured may be held to the promise."""

SEED = int(os.environ.get("FAULTS_SEED", "20260131"))
"""One seed replays a run: every random choice of the fault tests derives from it."""


def pick(short: int, full: int) -> int:
    """The count of this run."""
    return full if FULL else short


KILLS = pick(25, 1_000)
ACKNOWLEDGED = pick(100, 1_000)
DAMAGED_DATABASES = pick(20, 200)
RETRIED_ADDS = pick(500, 10_000)
HISTORIES = pick(200, 10_000)
DAMAGED_INDEXES = pick(50, 1_000)
FULL_DISKS = pick(5, 100)
MALFORMED = pick(10_000, 1_000_000)
NASTY_VALUES = pick(6, 1_000)
"""Strange values that each field of each operation is given."""
BACKUPS = pick(5, 100)
DRAINS = pick(5, 100)
HANDOVERS = pick(20, 1_000)
SCHEDULER_HANDOVERS = pick(4, 100)
"""Of these, so many between real schedulers; the others between clients."""
RESTARTS = pick(2, 20)
AUDIT_PLACES = pick(4, 60)


def on(storage: str, count: int) -> int:
    """The count of this run on a storage: a short run tries PostgreSQL a fifth as often."""
    return count if FULL or storage == SQLITE else -(-count // 5)


def timeout_s(short: int) -> int:
    """The bound of a whole test; full counts get a hundred times as long."""
    return short * 100 if FULL else short
