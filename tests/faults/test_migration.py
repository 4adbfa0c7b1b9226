"""P25: a migration between tiers destroys nothing, wherever it is killed, and undo restores all."""

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
from tests.harness.processes import OrchestratorProcess

HOME = "project:kept"
GROUPS = 4
GROUP = 6
LONERS = 70
"""Enough for two steps beside the groups."""
STEPS = 2 + GROUPS
# Where a run dies, and then the one that goes on with it: after how many of its steps.
DEATHS: tuple[tuple[int, ...], ...] = ((1,), (2, 1, 1), (STEPS - 1,), (STEPS,))


def fill(client: MemoryClient) -> None:
    for group in range(GROUPS):
        parent = client.add_memory(f"Machine{group}", memory_tier="long", namespace=HOME)
        client.batch_add_memories(
            [
                {
                    "content": f"Machine{group} was repaired for the {n}. time. It runs again.",
                    "memory_tier": "medium",
                    "parent_id": parent["memory_id"],
                    "trust": 0.5 + n / 100,
                }
                for n in range(GROUP)
            ],
            namespace=HOME,
        )
    client.batch_add_memories(
        [
            # Keyed ones are never summed up.
            {"content": f"Gadget{n}", "memory_tier": "medium", "key": f"g{n}"}
            for n in range(LONERS)
        ],
        namespace=HOME,
    )


def migrate(client: MemoryClient) -> Any:
    return client.migrate(HOME, "working", older_than_days=0, timeout=60.0)


def check_nothing_lost(
    trial: Trial, case: str, client: MemoryClient, before: dict[str, Any]
) -> None:
    """Every memory is there, and what is archived stands behind a summary that is there."""
    now = kept_in(client)
    trial.check(before.keys() <= now.keys(), f"{case}: {before.keys() - now.keys()} are lost")
    behind = {
        link["memory"]["id"]
        for memory in now.values()
        if memory["collection"] == "summaries"
        for link in client.get_related_memories(memory["id"], "derived_from", direction="out")[
            "related"
        ]
    }
    for memory_id, memory in now.items():
        hidden = memory["archived_at"] is not None
        trial.check(
            hidden == (memory_id in behind), f"{case}: {memory_id} is archived behind nothing"
        )
        if memory_id in before:
            same = memory["content"] == before[memory_id]["content"]
            trial.check(same, f"{case}: {memory_id} says something else")


@pytest.mark.timeout(counts.timeout_s(300))
def test_a_migration_that_is_killed_loses_nothing_and_is_gone_on_with(tmp_path: Path) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    with Trial("P25") as trial:
        try:
            with process.start(), process.client() as client:
                fill(client)
                before = kept_in(client)
            for runs, deaths in enumerate(DEATHS, 1):
                case = f"killed after steps {deaths}"
                for death in deaths:
                    process.start(RECOLLECT_FAILPOINTS=f"migrating:{death}")
                    with (
                        process.client(retry=Retry(attempts_max=1)) as client,
                        pytest.raises(errors.TransportError),
                    ):
                        migrate(client)
                    assert process.wait_ended() == -9, process.log()
                    trial.case()
                with process.start(), process.client(timeout=60.0) as client:
                    check_nothing_lost(trial, case, client, before)
                    listed = client.list_runs(HOME)["runs"]
                    trial.check(len(listed) == runs, f"{case}: there are {len(listed)} runs")
                    run_id, status = listed[0]["run_id"], listed[0]["run_status"]
                    trial.check(status == "interrupted", f"{case}: the run is {status}")
                    if len(deaths) > 1 or deaths == (STEPS,):
                        done = migrate(client)
                        trial.check(done["run_id"] == run_id, f"{case}: it is another run")
                        trial.check(done["resumed"] and done["complete"], f"{case}: {done}")
                        trial.check(
                            (done["to_longterm"], done["summarised"]) == (LONERS, GROUPS * GROUP),
                            f"{case}: {done['to_longterm']}, {done['summarised']} were moved",
                        )
                        check_nothing_lost(trial, f"{case}, gone on with", client, before)
                    undone = client.undo(run_id)
                    trial.check(undone["skipped"] == [], f"{case}: {undone['skipped']} were left")
                    compare(trial, f"{case}, undone", before, kept_in(client))
                    hit = client.search_memory("Machine2 repaired", None, 1, namespace=HOME)
                    trial.check(hit["count"] == 1, f"{case}: what is back is not found")
        finally:
            process.close()
