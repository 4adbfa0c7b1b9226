"""The load of the soak notices what is lost."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.soak_load import NAMESPACE, Agent, lost
from recollect import MemoryClient
from tests.harness.processes import OrchestratorProcess


def test_what_is_lost_or_changed_after_its_acknowledgement_is_told(
    orchestrator: OrchestratorProcess, tmp_path: Path
) -> None:
    agent = Agent(0, orchestrator.endpoint, tmp_path, seed=1)
    until_s = time.monotonic() + 30
    while len(agent.noted.added) < 3 or len(agent.noted.put) < 2:
        assert time.monotonic() < until_s
        agent.run(time.monotonic() + 0.2, lambda: 0)
    agent.close()
    noted = agent.noted
    assert noted.calls_us and noted.acknowledged >= 5
    with MemoryClient(orchestrator.endpoint) as client:
        assert lost(client, noted) == []
        gone, changed, *_ = noted.added
        client.purge(gone)
        client.update_memory(changed, {"content": "Something else"})
        key = next(iter(noted.put))
        client.put(NAMESPACE, key, {"value": 0})
        told = lost(client, noted)
    assert len(told) == 3
    assert all(any(name in line for line in told) for name in (gone, changed, key))
