"""Real scheduler processes for tests: started, stopped in their tracks, and watched."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.harness.forks import FORKS, ROOT, Forked
from tests.harness.processes import LIGHT, OrchestratorProcess

ENDED_WITHIN_S = 30.0
# Quick to look, and never at work by themselves while a test looks on.
CALM = {
    "RECOLLECT_SCHEDULER_POLL_S": "0.05",
    "RECOLLECT_SCHEDULER_JITTER_S_MAX": "0",
    "RECOLLECT_SCHEDULER_LEASE_TTL_S": "1",
}
JOBS = (
    *("decay", "tier_migration", "consolidation", "embedding_backfill", "index_maintenance"),
    *("version_squashing", "retention", "document_sync", "trimming", "database_optimise"),
    *("backup", "integrity_check"),
)


def only_when_asked() -> dict[str, str]:
    """Settings by which no job runs by its schedule."""
    return {f"RECOLLECT_JOBS_{job.upper()}_ENABLED": "false" for job in JOBS}


class SchedulerProcess:
    """`recollect scheduler` beside a running orchestrator, with a folder of its own."""

    def __init__(
        self,
        orchestrator: OrchestratorProcess,
        folder: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._orchestrator = orchestrator
        self.folder = folder
        self.env = dict(env or {})
        self.log_path = folder.parent / f"{folder.name}.log"
        folder.mkdir(parents=True, exist_ok=True)
        self._process: Forked | None = None

    def start(self) -> SchedulerProcess:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
        endpoint = self._orchestrator.endpoint
        self._process = FORKS.start(
            ["scheduler", "--data", str(self.folder), "--endpoint", endpoint],
            folder=self.folder,
            env={"PYTHONPATH": str(ROOT), **inherited, **LIGHT, **CALM, **self.env},
            out=self.log_path,
            err=self.log_path,
        )
        return self

    def word(self) -> dict[str, Any]:
        """What it left word of."""
        try:
            word: dict[str, Any] = json.loads((self.folder / "scheduler.json").read_text())
            return word
        except (FileNotFoundError, ValueError):
            return {}

    @property
    def state(self) -> str | None:
        return self.word().get("state")

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(ENDED_WITHIN_S)

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def __enter__(self) -> SchedulerProcess:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        if self.running():
            assert self._process is not None
            self._process.kill()
            self._process.wait(ENDED_WITHIN_S)
