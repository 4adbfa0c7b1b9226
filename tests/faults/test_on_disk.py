"""P2: a write is on disk before it is acknowledged.

On disk means: its pages were written to the log of the database, and the system was told to sync
that file and said that it did, before the first byte of the answer was sent.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.tools import syncs
from tests.harness.processes import OrchestratorProcess

WRITERS = 4


def write(process: OrchestratorProcess, number: int) -> list[str]:
    """Have several clients write at once; the ids that they were told."""
    with process.client() as client, ThreadPoolExecutor(WRITERS) as pool:
        client.ping()
        added = pool.map(lambda n: client.add_memory(f"Fact {n}"), range(number))
        return [str(answer["memory_id"]) for answer in added]


def check(trial: Trial, events: list[syncs.Event], ids: list[str]) -> None:
    trial.case(len(ids))
    for name in syncs.early(events, ids):
        trial.violated(f"{name} was acknowledged before it was on disk")


@pytest.mark.timeout(counts.timeout_s(60))
def test_sqlite_has_synced_a_write_before_it_is_acknowledged(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    env = {syncs.NOTES: str(notes)}
    with (
        Trial("P2") as trial,
        OrchestratorProcess(tmp_path / "data", env=env, before=[syncs.WATCH]) as process,
    ):
        ids = write(process, counts.ACKNOWLEDGED)
        check(trial, syncs.noted(notes), ids)


@pytest.mark.timeout(counts.timeout_s(60))
@pytest.mark.skipif(not syncs.can_trace(), reason="there is no strace that may attach")
def test_the_system_has_synced_a_write_before_it_is_acknowledged(tmp_path: Path) -> None:
    with Trial("P2") as trial, OrchestratorProcess(tmp_path / "data") as process:
        with syncs.traced(process, tmp_path) as events:
            ids = write(process, counts.ACKNOWLEDGED)
        check(trial, events, ids)


def test_the_check_notices_an_early_answer_and_a_missing_one() -> None:
    write, sync = syncs.Event("write", "..aa..bb.."), syncs.Event("sync")
    aa, bb = syncs.Event("reply", "aa"), syncs.Event("reply", "bb")
    assert syncs.early([write, sync, aa, bb], ["aa", "bb"]) == []
    assert syncs.early([write, aa, sync, bb], ["aa", "bb"]) == ["aa"]
    assert syncs.early([sync, write, aa], ["aa"]) == ["aa"]
    assert syncs.early([sync, aa, write], ["aa"]) == ["aa"]
    assert syncs.early([write, sync, aa], ["aa", "bb"]) == ["bb"]


def test_a_trace_is_read_with_calls_that_are_interrupted_by_others() -> None:
    log, data = "15</x/recollect.db-wal>", "14</x/recollect.db>"
    lines = [
        f'7 pwrite64({log}, "..aa..", 6, 0) = 6',
        f'7 pwrite64({data}, "..bb..", 6, 0) = 6',
        f"7 fdatasync({data}) = 0",
        f"7 fdatasync({log} <unfinished ...>",
        '8 sendto(9<socket:[1]>, "early", 5, 0, NULL, 0) = 5',
        "7 <... fdatasync resumed>) = 0",
        f"7 fdatasync({log}) = -1 EIO (Input/output error)",
    ]
    assert [event.kind for event in syncs.of_trace(lines)] == ["write", "reply", "sync"]
