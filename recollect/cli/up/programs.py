"""The programs that `recollect up` keeps running: how each is started, and when it is ready."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.cli.local_key import local_key_in, reachable
from recollect.cli.up.supervisor import Program
from recollect.client import AsyncMemoryClient, Retry
from recollect.config import Settings
from recollect.orchestrator.running.data_folder import announcement
from recollect.protocol.errors import RecollectError

PING_S = 1.0
# Over the time that the orchestrator gives itself to answer what it has accepted.
STOP_SLACK_S = 10.0
COMPANION_STOP_S = 15.0
COMPANIONS = ("scheduler", "gateway", "health")
"""Processes beside the orchestrator, which they need; each is a command of the same name."""


class Orchestrator:
    """How the orchestrator is started, and how one sees that it is ready."""

    def __init__(self, settings: Settings, folder: Path, config: str | None) -> None:
        self.folder = folder
        self.log_path = log_path(folder, "orchestrator")
        self.endpoint = settings.network.bind
        self.wanted_model = settings.embedding.model
        self.wants_local = settings.embedding.provider == "local"
        # What it says of its embedding, and whether it asks for keys, once it is ready.
        self.embedding: dict[str, Any] | None = None
        self.asks_for_keys = False
        self._config = ["--config", config] if config else []
        self._stop_s = settings.network.drain_s + STOP_SLACK_S

    def program(self) -> Program:
        return Program(
            "orchestrator", self.command, self.log_path, self.is_ready, stop_s=self._stop_s
        )

    def command(self) -> Sequence[str]:
        # The endpoint that was announced: a port that the system chose stays the same from then on.
        return (
            *(sys.executable, "-m", "recollect", "orchestrator", "--supervised"),
            *("--data", str(self.folder), "--bind", self.endpoint, *self._config),
        )

    async def is_ready(self, pid: int) -> bool:
        announced = announcement(self.folder)
        if announced is None or announced.get("pid") != pid:
            return False
        endpoint = str(announced["endpoint"])
        key_file = local_key_in(self.folder) if announced.get("keys") else None
        try:
            async with AsyncMemoryClient(
                reachable(endpoint), key_file=key_file, retry=Retry(attempts_max=1)
            ) as client:
                await client.ping(timeout=PING_S)
                self.embedding = await _embedding(client)
        except RecollectError:
            return False
        self.endpoint = endpoint
        self.asks_for_keys = key_file is not None
        return True


class Companion:
    """A process that is a client of the orchestrator; the memory serves without it, too."""

    def __init__(self, name: str, orchestrator: Orchestrator, config: str | None) -> None:
        self.name = name
        self.said: dict[str, Any] = {}
        """What it says of itself, once it is ready."""
        self._orchestrator = orchestrator
        self._config = ["--config", config] if config else []

    def program(self) -> Program:
        return Program(
            self.name,
            self.command,
            log_path(self._orchestrator.folder, self.name),
            self.is_ready,
            stop_s=COMPANION_STOP_S,
            stage=1,
            essential=False,
        )

    def command(self) -> Sequence[str]:
        folder = self._orchestrator.folder
        return (
            *(sys.executable, "-m", "recollect", self.name, "--supervised"),
            *("--data", str(folder), "--endpoint", reachable(self._orchestrator.endpoint)),
            *self._config,
        )

    async def is_ready(self, pid: int) -> bool:
        announced = announcement(self._orchestrator.folder, self.name)
        if announced is None or announced["pid"] != pid:
            return False
        self.said = announced
        return True

    @property
    def url(self) -> str | None:
        """Where a browser finds it, if it says so."""
        return self.said.get("url")

    def places(self) -> list[tuple[str, str]]:
        """What people may want to open of it, by the name under which they know it."""
        if self.url is None:
            return []
        if self.name == "health":
            return [("dashboard", self.url)]
        rest = [("REST", f"{self.url}/docs")] if self.said.get("rest") else []
        known = (("MCP", "mcp_url"), ("gRPC", "grpc"))
        return rest + [(name, self.said[key]) for name, key in known if key in self.said]


def log_path(folder: Path, name: str) -> Path:
    """Where a process of a data folder writes what it has to say."""
    return folder / "logs" / f"{name}.log"


async def _embedding(client: AsyncMemoryClient) -> dict[str, Any] | None:
    try:
        return (await client.stats(timeout=PING_S))["embedding"]
    except RecollectError:
        return None  # It serves all the same; `recollect stats` will tell.
