"""P1: an acknowledged write survives kill -9."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.tools import database
from tests.faults.tools.acknowledgements import AcknowledgementLog
from tests.faults.tools.writers import Writers
from tests.harness.processes import OrchestratorProcess
from tests.harness.storages import CHOSEN, POSTGRESQL, SQLITE

FAILPOINTS = {
    SQLITE: ("before_commit", "after_commit", "before_reply", "while_sealing"),
    # It has no segments to seal.
    POSTGRESQL: ("before_commit", "after_commit", "before_reply"),
}
# Of the last one: a small head is sealed often, though not as often as anything is committed.
SEALS_MAX = 2
PASSES_MAX = 60
SEARCHED = 60
ACKNOWLEDGEMENTS_MAX = 120


def run_until_killed(
    process: OrchestratorProcess, log: AcknowledgementLog, chance: random.Random
) -> str:
    """One life under load, ended from outside at a random moment or inside at a failpoint."""
    how = chance.choice(("from outside", *FAILPOINTS[CHOSEN.kind]))
    if how == "from outside":
        process.start(wait=False)
        log.wait_for_more(chance.randint(1, ACKNOWLEDGEMENTS_MAX))
        process.kill()
    else:
        passes = chance.randint(1, SEALS_MAX if how == "while_sealing" else PASSES_MAX)
        process.start(wait=False, RECOLLECT_FAILPOINTS=f"{how}:{passes}")
        assert process.wait_ended() == -9, f"it did not die at {how}:{passes}:\n{process.log()}"
    return how


def search_after_start(
    process: OrchestratorProcess, log: AcknowledgementLog, chance: random.Random
) -> list[str]:
    """Whether the index is complete again while the writers go on; it is killed afterwards."""
    with process.start(), process.client(timeout=30.0) as client:
        return log.check_found(client, SEARCHED, chance)


@pytest.mark.timeout(counts.timeout_s(240))
def test_no_acknowledged_write_is_lost_to_kill_9(storage: str, tmp_path: Path) -> None:
    kills = counts.on(storage, counts.KILLS)
    process = OrchestratorProcess(tmp_path / "data", env={"RECOLLECT_INDEX_HEAD_MAX": "16"})
    log = AcknowledgementLog()
    chance = random.Random(counts.SEED)
    with Trial("P1") as trial:
        try:
            with Writers(process.endpoint, log, seed=counts.SEED) as writers:
                for number in range(kills):
                    how = run_until_killed(process, log, chance)
                    trial.case()
                    for problem in database.problems(process.data, tmp_path / "copy"):
                        trial.violated(f"after kill {number} ({how}): {problem}")
                    if how == "while_sealing":
                        for problem in search_after_start(process, log, chance):
                            trial.violated(f"after kill {number} ({how}): {problem}")
                process.start()
                writers.stop()
            for failure in writers.failures:
                trial.violated(failure)
            for complaint in log.check(process.endpoint):
                trial.violated(complaint)
            assert len(log) > 10 * kills, "there was too little traffic to lose anything"
            assert process.stop() == 0
            for problem in database.problems(process.data, tmp_path / "copy"):
                trial.violated(f"at the end: {problem}")
        finally:
            process.close()
