"""Real orchestrator processes for tests: started, watched, killed and started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect import MemoryClient
from tests.harness.forks import FORKS, ROOT, Forked
from tests.harness.ports import free_port
from tests.harness.storages import CHOSEN, VARIABLE

READY_WITHIN_S = 30.0
# Most tests are about something else than meaning or Redis, and quicker without both.
LIGHT = {"RECOLLECT_EMBEDDING_PROVIDER": "hashed", "RECOLLECT_REDIS_URL": "off"}
STOPPED_WITHIN_S = 30.0
ASK_FOR_KEYS = "RECOLLECT_ACCESS_REQUIRE_KEYS"


class OrchestratorProcess:
    """`recollect orchestrator` on a data folder of its own, always at the same endpoint."""

    def __init__(
        self,
        data: Path,
        *,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.endpoint = f"tcp://127.0.0.1:{port or free_port()}"
        given = dict(env or {})
        self.env = given if VARIABLE in given else CHOSEN.env_of(data) | given
        self._before = before
        self.log_path = data.parent / f"{data.name}.log"
        self._process: Forked | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, wait: bool = True, **env: str) -> OrchestratorProcess:
        """Start it; returns when it answers a ping, if asked to wait."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("RECOLLECT_")}
        self._process = FORKS.start(
            ["orchestrator", "--data", str(self.data), "--bind", self.endpoint],
            folder=self.data.parent,
            # The code beside these tests is what is tested, installed or not.
            env={"PYTHONPATH": str(ROOT), **inherited, **LIGHT, **self.env, **env},
            out=self.log_path,
            err=self.log_path,
            before=self._before,
        )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Return once it answers; fail with its log if it ends or takes too long."""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if not self.running():
                raise AssertionError(f"the orchestrator ended:\n{self.log()}")
            if (self.data / "orchestrator.json").exists():
                with self.client() as client:
                    try:
                        client.ping(timeout=1.0)
                        return
                    except Exception:
                        continue
            time.sleep(0.01)
        raise AssertionError(f"the orchestrator was not ready in time:\n{self.log()}")

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOPPED_WITHIN_S)

    def wait_ended(self) -> int:
        """Wait until it has ended by itself; the exit code."""
        assert self._process is not None
        return self._process.wait(STOPPED_WITHIN_S)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_ended()

    def close(self) -> None:
        """End it in whatever way, if it runs."""
        if self.running():
            self.signal(signal.SIGCONT)
            self.kill()

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def local_key(self) -> Path:
        """The key of the machine itself."""
        return self.data / "keys" / "local.key"

    def client(self, **options: Any) -> MemoryClient:
        """A new client of this orchestrator, with the key of the machine where keys are asked."""
        if self.env.get(ASK_FOR_KEYS) == "true":
            options.setdefault("key_file", self.local_key)
        return MemoryClient(self.endpoint, **options)

    def __enter__(self) -> OrchestratorProcess:
        return self if self.running() else self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.close()
