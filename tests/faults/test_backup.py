"""P18: a backup taken under load restores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.cli.backups.folders import restore_into
from recollect.cli.backups.servers import restore_into_server
from recollect.orchestrator.storage.copies import MANIFEST_NAME
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.tools import database
from tests.faults.tools.acknowledgements import AcknowledgementLog
from tests.faults.tools.writers import Writers
from tests.harness.processes import OrchestratorProcess
from tests.harness.storages import CHOSEN, SQLITE


def bring_back(backup: Path, data: Path) -> None:
    """Have a backup as the store that goes with a data folder."""
    told: dict[str, Any] = {"begun": lambda total: None, "copied": lambda count: None}
    if CHOSEN.kind == SQLITE:
        restore_into(backup, data, **told)
    else:
        restore_into_server(backup, CHOSEN.empty_for(data), **told)


@pytest.mark.timeout(counts.timeout_s(90))
def test_a_backup_taken_under_load_holds_all_that_was_acknowledged_before_it(
    storage: str, orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    log = AcknowledgementLog()
    with Trial("P18") as trial:
        with Writers(orchestrator.endpoint, log, seed=counts.SEED) as writers:
            for number in range(counts.on(storage, counts.BACKUPS)):
                log.wait_for_more(100)
                before = AcknowledgementLog()
                before.add(*log.entries())
                backup = tmp_path / f"backup-{number}"
                with orchestrator.client() as client:
                    made = client.backup(str(backup), timeout=60.0)
                assert len(log) > len(before), "nothing was written beside the backup"
                trial.check((backup / MANIFEST_NAME).exists(), "the backup has no manifest")
                restored = tmp_path / f"restored-{number}"
                bring_back(backup, restored)
                for problem in database.problems(restored, tmp_path / "copy"):
                    trial.violated(f"backup {number}: {problem}")
                with OrchestratorProcess(restored) as elsewhere:
                    for complaint in before.check(elsewhere.endpoint, latest=False):
                        trial.violated(f"backup {number}: {complaint}")
                    with elsewhere.client() as client:
                        trial.check(
                            client.ping()["seq"] == made["seq"],
                            "the backup is of another moment than it says",
                        )
                        content = f"restored{number} goes on"
                        added = client.add_memory(content)
                        found = client.search_memory(content.split()[0])["results"]
                        trial.check(
                            [memory["id"] for memory in found] == [added["memory_id"]],
                            "what is written after the restoration is not found",
                        )
                trial.case()
        for failure in writers.failures:
            trial.violated(failure)
