"""Everything that `recollect up` starts, as tests watch it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.system.cli.commands import Up, wait_for

ROLES = ("orchestrator", "scheduler", "gateway", "health")
ASKED_WITHIN_S = 5.0
# A port that the system chooses, and probes quick enough to see a restart.
QUICK = {
    "RECOLLECT_HEALTH_PORT": "0",
    "RECOLLECT_GATEWAY_PORT": "0",
    "RECOLLECT_GATEWAY_GRPC_PORT": "0",
    "RECOLLECT_HEALTH_PROBE_INTERVAL_S": "0.1",
    "RECOLLECT_HEALTH_CANARY_INTERVAL_S": "1",
    "RECOLLECT_SCHEDULER_LEASE_TTL_S": "2",
    "RECOLLECT_REDIS_URL": "embedded",
}


class WholeSystem(Up):
    """`recollect up` with all its processes, on a data folder of its own."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, env={**QUICK, **(env or {})}, without=())

    def serving(self, role: str) -> psutil.Process | None:
        """The process that serves in a role now, if one is ready."""
        try:
            announced = json.loads((self.data / f"{role}.json").read_text())
            found = psutil.Process(announced["pid"])
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None
        return found if found.is_running() and found.status() != psutil.STATUS_ZOMBIE else None

    def running(self, role: str) -> psutil.Process:
        found = self.serving(role)
        assert found is not None, f"no {role} runs:\n{self.output()}"
        return found

    def redis(self) -> psutil.Process | None:
        """The redis-server of its own, if one runs."""
        orchestrator = self.serving("orchestrator")
        if orchestrator is None:
            return None
        for child in orchestrator.children(recursive=True):
            try:
                if "redis-server" in child.name():
                    return child
            except psutil.NoSuchProcess:
                continue
        return None

    def all(self) -> dict[str, psutil.Process]:
        """Every process by its role."""
        found = {role: self.running(role) for role in ROLES}
        if (redis := self.redis()) is not None:
            found["redis"] = redis
        return found

    @property
    def url(self) -> str:
        return str(json.loads((self.data / "health.json").read_text())["url"])

    def status(self) -> dict[str, Any]:
        """What the health manager says; nothing while it is away."""
        try:
            answer: dict[str, Any] = httpx.get(
                f"{self.url.rstrip('/')}/status", timeout=ASKED_WITHIN_S, trust_env=False
            ).json()
        except (httpx.HTTPError, OSError, ValueError):
            return {}
        return answer

    def component(self, name: str) -> dict[str, Any]:
        for component in self.status().get("components", []):
            if component["name"] == name:
                return dict(component)
        return {}

    def wait_until(self, happened: Callable[[], bool]) -> None:
        wait_for(happened, lambda: f"{json.dumps(self.status(), indent=1)}\n{self.output()}")

    def wait_healthy(self) -> None:
        self.wait_until(lambda: self.status().get("state") == "healthy")

    def close(self) -> None:
        """End what is left of it, in whatever way."""
        left = [process for role in ROLES if (process := self.serving(role)) is not None]
        left += [redis] if (redis := self.redis()) is not None else []
        super().close()
        for process in left:
            if process.is_running():
                process.kill()
