"""A real gateway process for tests, on free ports."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.harness.forks import FORKS, ROOT, Forked

WITHIN_S = 30.0
# What a test is not about takes long to import.
REST_ALONE = {"RECOLLECT_GATEWAY_MCP": "false", "RECOLLECT_GATEWAY_GRPC": "false"}
FREE_PORTS = {"RECOLLECT_GATEWAY_PORT": "0", "RECOLLECT_GATEWAY_GRPC_PORT": "0"}


class GatewayProcess:
    """`recollect gateway` on the data folder of an orchestrator."""

    def __init__(
        self, data: Path, endpoint: str | None = None, env: Mapping[str, str] = REST_ALONE
    ) -> None:
        """Without an endpoint it finds the orchestrator by what that left word of."""
        self.data = data
        self.endpoint = endpoint
        self.env = dict(env)
        self.log_path = data.parent / f"{data.name}-gateway.log"
        self.said: dict[str, Any] = {}
        self._process: Forked | None = None

    @property
    def url(self) -> str:
        return str(self.said["url"])

    def start(self, **env: str) -> GatewayProcess:
        """Start it; returns when it has said where it is."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
        found = ["--endpoint", self.endpoint] if self.endpoint else []
        self._process = FORKS.start(
            ["gateway", "--data", str(self.data), *found],
            folder=self.data.parent,
            env={"PYTHONPATH": str(ROOT), **inherited, **FREE_PORTS, **self.env, **env},
            out=self.log_path,
            err=self.log_path,
        )
        deadline_s = time.monotonic() + WITHIN_S
        while not self._announced():
            assert time.monotonic() < deadline_s, f"it did not start in time:\n{self.log()}"
            time.sleep(0.01)
        return self

    def _announced(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"it ended:\n{self.log()}"
        try:
            self.said = json.loads((self.data / "gateway.json").read_bytes())
        except (OSError, ValueError):
            return False
        return bool(self.said["pid"] == self._process.pid)

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def client(self, **options: Any) -> httpx.Client:
        """An HTTP client of it."""
        options.setdefault("timeout", WITHIN_S)
        return httpx.Client(base_url=self.url, trust_env=False, **options)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait_ended(self) -> int:
        assert self._process is not None
        return self._process.wait(WITHIN_S)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_ended()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(WITHIN_S)

    def __enter__(self) -> GatewayProcess:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()
