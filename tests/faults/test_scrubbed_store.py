"""P1: an acknowledged write survives kill -9, also while the file is wiped beneath it."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from recollect.orchestrator.storage.copies import DATABASE_NAME
from recollect.orchestrator.storage.sqlite.session import SqliteSession
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.scrubbed_store import SCRUBBED, generations

KILLS = counts.pick(3, 100)
ACKS_MAX = 800  # before it is killed
LINES_MAX = 20_000
BUSY_MS = 50


@pytest.mark.timeout(counts.timeout_s(60))
@pytest.mark.parametrize("page_bytes", [512, 4096, 65_536])
def test_a_store_that_is_scrubbed_all_the_time_loses_nothing(
    tmp_path: Path, page_bytes: int
) -> None:
    chance = random.Random(counts.SEED + page_bytes)
    with Trial("P1") as trial:
        scrubbed = 0
        for _ in range(KILLS):
            lines = work_until_killed(tmp_path, chance, page_bytes, at_least=0 if scrubbed else 1)
            scrubbed += lines.count(SCRUBBED)
            acknowledged = {
                int(num): int(generation)
                for num, generation in (line.split() for line in lines if line != SCRUBBED)
            }
            session = SqliteSession(tmp_path / DATABASE_NAME, page_cache_mb=8, readonly=False)
            with closing(session.connection):
                found = generations(session)
                assert session.execute("PRAGMA page_size") == [(page_bytes,)]
            trial.case(len(acknowledged))
            for num, generation in acknowledged.items():
                if found.get(num, 0) < generation:
                    trial.violated(f"row {num} is {found.get(num)} and was {generation}")
        assert scrubbed, "it was never scrubbed"


def work_until_killed(
    folder: Path, chance: random.Random, page_bytes: int, *, at_least: int
) -> list[str]:
    """What it said, line by line; scrubbed at least so often, if that did not take too long."""
    seed, acks = chance.randrange(1_000_000), chance.randint(1, ACKS_MAX)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.faults.scrubbed_store"),
            *(str(folder), str(seed), str(page_bytes)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "begun\n"
            lines = [process.stdout.readline()]
            with closing(apsw.Connection(str(folder / DATABASE_NAME))) as other:
                other.set_busy_timeout(BUSY_MS)
                for number in range(LINES_MAX):
                    lines.append(process.stdout.readline())
                    if number % 2 == 0:
                        checkpoint(other, chance)
                    if number >= acks and lines.count(f"{SCRUBBED}\n") >= at_least:
                        break
            assert process.poll() is None, "it ended by itself"
        finally:
            process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
    # What is said of the last one may have been cut off.
    return [line.rstrip("\n") for line in lines if line.endswith("\n")]


def checkpoint(connection: apsw.Connection, chance: random.Random) -> None:
    """Move the log, as another process may."""
    mode = chance.choice([apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_TRUNCATE])
    with suppress(apsw.BusyError):
        connection.wal_checkpoint(mode=mode)
