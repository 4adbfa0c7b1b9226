"""Brings a database up to date in a process of its own: `python -m tests.faults.migrating DATABASE
MIGRATIONS`. RECOLLECT_FAILPOINTS has it die on the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from recollect.orchestrator.running import failpoints
from recollect.orchestrator.storage.sqlite.schema import apply_migrations
from recollect.orchestrator.storage.sqlite.session import SqliteSession

ROOT = Path(__file__).parents[2]
ENDED_WITHIN_S = 30.0


def migrate(database: Path, migrations: Path, *, die_at: int | None = None) -> int:
    """Run it; the exit code. `die_at` kills it after that many statements."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(database), str(migrations)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RECOLLECT_FAILPOINTS": f"mid_migration:{die_at}" if die_at is not None else "",
        },
        capture_output=True,
        timeout=ENDED_WITHIN_S,
    )
    return done.returncode


def main() -> None:
    failpoints.arm(os.environ["RECOLLECT_FAILPOINTS"])
    session = SqliteSession(Path(sys.argv[1]), page_cache_mb=8, readonly=False)
    apply_migrations(session, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
