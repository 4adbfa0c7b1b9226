"""An orchestrator of their own for your tests: pytest fixtures that need no setting up.

    # conftest.py
    pytest_plugins = ["recollect.testing"]

    # test_agent.py
    def test_my_agent_remembers(memory_client):
        my_agent.learn(memory_client)
        assert memory_client.recall("green tea")["count"] == 1

`memory_client` is a client of an empty memory; `recollect_orchestrator` is the real process behind
it, in a temporary folder and at a free port, with `endpoint`, `client()`, `kill()` and `start()`.
Each test has its own. `recollect_settings`, overridden in your conftest, changes how it runs; as it
is, texts are embedded by their spelling, which needs no model, and there is no Redis.

It needs pytest, and the server: pip install 'recollect[server]'.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from recollect.client import MemoryClient

try:
    import pytest
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "recollect.testing gives fixtures to pytest, which is not installed: pip install pytest",
        name=missing.name,
    ) from missing

__all__ = [
    "OrchestratorForTests",
    "memory_client",
    "recollect_orchestrator",
    "recollect_settings",
]

LIGHT: Mapping[str, str] = {"embedding.provider": "hashed", "redis.url": "off"}
SERVER_PACKAGES = ("apsw", "faiss", "numpy", "structlog", "typer", "yaml")
READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 30.0
LOOK_S = 0.01
ANNOUNCEMENT = "orchestrator.json"


class OrchestratorForTests:
    """A real orchestrator on a folder of its own, at the same endpoint over all its starts."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        _need_the_server()
        self.folder = folder
        self.log_path = folder.parent / f"{folder.name}.log"
        self._settings = {**LIGHT, **(settings or {})}
        self._endpoint = "tcp://127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None

    @property
    def endpoint(self) -> str:
        """Where it listens; a free port is chosen at the first start."""
        return self._endpoint

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._running().pid

    def start(self) -> OrchestratorForTests:
        """Start it, or start it again on what it has stored; returns when it answers."""
        config = self.folder.parent / f"{self.folder.name}.json"
        config.write_bytes(msgspec.json.encode(_nested(self._settings)))  # JSON is YAML, too
        # Its standard input is a pipe that nobody writes to: when the tests end, in whatever way,
        # it is closed, and the orchestrator ends as well.
        child_end, self._lifeline = os.pipe()
        arguments = ["--data", str(self.folder), "--bind", self._endpoint, "--config", str(config)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recollect", "orchestrator", "--supervised", *arguments],
                stdin=child_end,
                stdout=log,
                stderr=log,
                env={k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")},
            )
        os.close(child_end)
        self._wait_ready()
        return self

    def client(self, **options: Any) -> MemoryClient:
        """A new client of it; close it, or use it in a `with`."""
        return MemoryClient(self._endpoint, **options)

    def kill(self) -> None:
        """kill -9, to see what your agent does then; `start()` brings it back with its memories."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it, if it runs; what was acknowledged is in its folder."""
        if self._process is not None:
            self._end(signal.SIGTERM)

    def log(self) -> str:
        """What it wrote into its log."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("The orchestrator does not run: call start().")
        return self._process

    def _wait_ready(self) -> None:
        process = self._running()
        until_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until_s and process.poll() is None:
            announced = self._announced()
            if announced is not None and announced["pid"] == process.pid:
                self._endpoint = announced["endpoint"]
                return
            time.sleep(LOOK_S)
        self.stop()
        raise RuntimeError(f"The orchestrator did not start. Its log says:\n{self.log()}")

    def _announced(self) -> dict[str, Any] | None:
        try:
            announced = msgspec.json.decode((self.folder / ANNOUNCEMENT).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return announced if isinstance(announced, dict) else None

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._running(), None
        process.send_signal(number)
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOPPED_WITHIN_S)
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


@pytest.fixture
def recollect_settings() -> dict[str, object]:
    """Settings of the orchestrator by their dotted names; override it in your conftest."""
    return {}


@pytest.fixture
def recollect_orchestrator(
    tmp_path_factory: pytest.TempPathFactory, recollect_settings: dict[str, object]
) -> Iterator[OrchestratorForTests]:
    """An orchestrator of this test's own, with an empty memory."""
    orchestrator = OrchestratorForTests(
        tmp_path_factory.mktemp("recollect") / "data", recollect_settings
    )
    try:
        yield orchestrator.start()
    finally:
        orchestrator.stop()


@pytest.fixture
def memory_client(recollect_orchestrator: OrchestratorForTests) -> Iterator[MemoryClient]:
    """A client of this test's own orchestrator."""
    with recollect_orchestrator.client(agent_id="test") as client:
        yield client


def _need_the_server() -> None:
    for name in SERVER_PACKAGES:
        if find_spec(name) is None:
            raise ModuleNotFoundError(
                f"recollect.testing starts a real orchestrator, which needs the package {name}: "
                "pip install 'recollect[server]'",
                name=name,
            )


def _nested(settings: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Dotted names as the sections of a configuration."""
    sections: dict[str, dict[str, object]] = {}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        sections.setdefault(section, {})[key] = value
    return sections
