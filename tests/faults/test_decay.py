"""P25: decay destroys nothing, wherever it is killed, and undo restores all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.client import MemoryClient, Retry
from recollect.protocol import errors
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.test_consolidation import compare
from tests.faults.test_consolidation import kept as kept_in
from tests.faults.test_migration import GROUP, GROUPS, LONERS, check_nothing_lost, fill
from tests.harness.processes import OrchestratorProcess

HOME = "project:kept"
ARCHIVED = 120
# Here all of a tier fades at once, and what is in a colder one does not within the test.
AT_ONCE, NOT_NOW = "0.000000001", "3650"


def fading(medium: str, long: str) -> dict[str, str]:
    return {
        "RECOLLECT_DECAY_FADE_THRESHOLD": "0.999",
        "RECOLLECT_DECAY_SHRINK_MAX": "1",
        "RECOLLECT_DECAY_HALF_LIFE_DAYS_SHORT": AT_ONCE,
        "RECOLLECT_DECAY_HALF_LIFE_DAYS_MEDIUM": medium,
        "RECOLLECT_DECAY_HALF_LIFE_DAYS_LONG": long,
    }


def fade(client: MemoryClient) -> Any:
    return client.fade_memories(HOME, timeout=60.0)


def die(process: OrchestratorProcess, step: int) -> None:
    """Let a run of decay die after so many of its steps."""
    process.start(RECOLLECT_FAILPOINTS=f"migrating:{step}")
    with (
        process.client(retry=Retry(attempts_max=1)) as client,
        pytest.raises(errors.TransportError),
    ):
        fade(client)
    assert process.wait_ended() == -9, process.log()


@pytest.mark.timeout(counts.timeout_s(120))
def test_what_fades_is_not_lost_when_the_run_is_killed(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data", env=fading(AT_ONCE, NOT_NOW))
    with Trial("P25") as trial:
        try:
            with process.start(), process.client() as client:
                fill(client)
                before = kept_in(client)
            for step in (1, 3, 1):
                die(process, step)
                trial.case()
            with process.start(), process.client(timeout=60.0) as client:
                check_nothing_lost(trial, "killed", client, before)
                [run] = client.list_runs(HOME)["runs"]
                trial.check(run["run_status"] == "interrupted", f"the run is {run['run_status']}")
                done = fade(client)
                trial.check(done["run_id"] == run["run_id"], "it is another run")
                trial.check(done["resumed"] and done["complete"], f"gone on with: {done}")
                trial.check(
                    (done["to_long"], done["summarised"]) == (LONERS, GROUPS * GROUP),
                    f"{done['to_long']}, {done['summarised']} were moved",
                )
                check_nothing_lost(trial, "gone on with", client, before)
                undone = client.undo(run["run_id"])
                trial.check(undone["skipped"] == [], f"{undone['skipped']} were left")
                compare(trial, "undone", before, kept_in(client))
                hit = client.search_memory("Machine2 repaired", None, 1, namespace=HOME)
                trial.check(hit["count"] == 1, "what is back is not found")
                trial.case()
        finally:
            process.close()


@pytest.mark.timeout(counts.timeout_s(120))
def test_what_is_archived_comes_back_from_a_run_that_was_killed(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data", env=fading(AT_ONCE, AT_ONCE))
    items = [{"content": f"Gadget{n}", "memory_tier": "long"} for n in range(ARCHIVED)]
    with Trial("P25") as trial:
        try:
            with process.start(), process.client() as client:
                client.batch_add_memories(items, namespace=HOME)
                before = kept_in(client)
            die(process, 2)
            with process.start(), process.client(timeout=60.0) as client:
                now = kept_in(client)
                gone = sum(one["archived_at"] is not None for one in now.values())
                trial.check(gone == 100, f"{gone} are archived after two steps")
                trial.check(now.keys() == before.keys(), "some are lost")
                [run] = client.list_runs(HOME)["runs"]
                # Undone as far as it came, without going on with it.
                client.undo(run["run_id"])
                compare(trial, "undone", before, kept_in(client))
                done = fade(client)
                trial.check(done["archived"] == ARCHIVED, f"{done}")
                client.undo(done["run_id"])
                compare(trial, "undone again", before, kept_in(client))
                trial.case(2)
        finally:
            process.close()
