"""A real health manager for tests, quick enough to be waited for."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.harness.forks import FORKS, ROOT, Forked

WITHIN_S = 30.0
# It takes longer to import than all the rest, and has tests of its own.
WITHOUT_DASHBOARD = {"RECOLLECT_HEALTH_DASHBOARD": "false"}
QUICK = {
    "RECOLLECT_HEALTH_PORT": "0",
    "RECOLLECT_HEALTH_PROBE_INTERVAL_S": "0.05",
    "RECOLLECT_HEALTH_PROBE_TIMEOUT_S": "1.0",
    "RECOLLECT_HEALTH_CANARY_INTERVAL_S": "0.2",
    "RECOLLECT_HEALTH_INDEX_INTERVAL_S": "1.0",
    "RECOLLECT_HEALTH_WEBHOOK_BACKOFF_MS": "20",
}


class HealthProcess:
    """`recollect health` on the data folder of an orchestrator."""

    def __init__(self, data: Path, endpoint: str, env: Mapping[str, str] | None = None) -> None:
        self.data = data
        self.endpoint = endpoint
        self.env = dict(env or {})
        self.log_path = data.parent / f"{data.name}-health.log"
        self.url = ""
        self._process: Forked | None = None

    def start(self, **env: str) -> HealthProcess:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
        self._process = FORKS.start(
            ["health", "--data", str(self.data), "--endpoint", self.endpoint],
            folder=self.data.parent,
            env={"PYTHONPATH": str(ROOT), **inherited, **QUICK, **self.env, **env},
            out=self.log_path,
            err=self.log_path,
        )
        self.until(self._announced, "it says where it is")
        return self

    def _announced(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"it ended:\n{self.log_path.read_text()}"
        try:
            told = json.loads((self.data / "health.json").read_bytes())
        except (OSError, ValueError):
            return False
        self.url = str(told["url"])
        return bool(told["pid"] == self._process.pid)

    def get(self, path: str, **given: Any) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=WITHIN_S, trust_env=False, **given)

    def status(self) -> dict[str, Any]:
        return dict(self.get("/status").json())

    def states(self) -> dict[str, str]:
        """The state of each component."""
        return {part["name"]: part["state"] for part in self.status()["components"]}

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        deadline_s = time.monotonic() + WITHIN_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise AssertionError(f"waited in vain until {what}:\n{self.log_path.read_text()}")
            time.sleep(0.02)

    def until_state(self, state: str) -> None:
        self.until(lambda: self.status()["state"] == state, f"it is {state}")

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(WITHIN_S)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(WITHIN_S)

    def __enter__(self) -> HealthProcess:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()
