"""The system of the demo: real processes under the supervisor of `recollect up`, in a folder of
their own and at free ports, that end with the demo, however it ends."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from recollect.cli.failures import Failure
from recollect.cli.up.programs import COMPANIONS, Companion, Orchestrator
from recollect.cli.up.supervisor import Backoff, Program, StartFailed, Supervisor
from recollect.client import Breaker, MemoryClient, Retry
from recollect.config import Settings, load
from recollect.orchestrator.running.data_folder import announcement

READY_WITHIN_S = 60.0
COMPANIONS_WITHIN_S = 60.0
LOOK_S = 0.02
STOPPED_WITHIN_S = 40.0
# Of the surroundings only what says how to embed and to cache; the rest would lead elsewhere.
KEPT_VARIABLES = ("RECOLLECT_MODELS", "RECOLLECT_EMBEDDING_", "RECOLLECT_REDIS_")
CONFIG = """\
network: {bind: "tcp://127.0.0.1:0", drain_s: 2}
health: {port: 0, breaker_window_s: 15}
gateway: {port: 0, grpc_port: 0}
"""


class DemoSystem:
    """An orchestrator, and later its companions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "data"
        self._config = folder / "demo.yaml"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo", daemon=True)
        self._supervisors: list[Supervisor] = []
        self._running: list[tuple[threading.Event, list[BaseException]]] = []
        self._orchestrator: Orchestrator | None = None
        self._companions: list[Companion] = []

    def start(self) -> None:
        """Start the orchestrator; returns when it answers."""
        self.folder.mkdir(parents=True)
        (self.folder / "logs").mkdir()
        self._config.write_text(CONFIG)
        settings = self._settings()
        self._thread.start()
        self._orchestrator = Orchestrator(settings, self.folder, str(self._config))
        supervisor, failed = self._supervise([self._orchestrator.program()])
        self._wait(supervisor, failed, READY_WITHIN_S, "The orchestrator")

    def start_companions(self) -> None:
        """Start the scheduler, the gateway and the dashboard; nobody is waited for."""
        assert self._orchestrator is not None
        config = str(self._config)
        self._companions = [Companion(name, self._orchestrator, config) for name in COMPANIONS]
        self._supervise([one.program() for one in self._companions])

    def dashboard(self) -> str | None:
        """Where the dashboard is, once it is there; None if it does not come in time."""
        pause = threading.Event()
        for _ in range(int(COMPANIONS_WITHIN_S / LOOK_S)):
            for one in self._companions:
                if one.name == "health" and one.url is not None:
                    return one.url
            pause.wait(LOOK_S)
        return None

    def client(self, agent_id: str) -> MemoryClient:
        """A client of this system, that goes on trying while the orchestrator is away."""
        return MemoryClient(
            self.endpoint,
            agent_id=agent_id,
            retry=Retry(attempts_max=8, backoff_ms_max=200),
            # Whoever goes on trying need not be kept from it.
            breaker=Breaker(fail_max=1000),
        )

    def kill_orchestrator(self) -> int:
        """kill -9 of the orchestrator that runs now; its process number."""
        announced = announcement(self.folder)
        assert announced is not None
        pid = int(announced["pid"])
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self) -> None:
        """Stop everything, companions first."""
        for supervisor, (done, _) in reversed(
            list(zip(self._supervisors, self._running, strict=True))
        ):
            self._loop.call_soon_threadsafe(supervisor.stop)
            if not done.wait(STOPPED_WITHIN_S):
                self._loop.call_soon_threadsafe(supervisor.stop)
                done.wait(STOPPED_WITHIN_S)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOPPED_WITHIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def endpoint(self) -> str:
        """Where the orchestrator listens."""
        assert self._orchestrator is not None
        return self._orchestrator.endpoint

    @property
    def model(self) -> str:
        """What turns text into vectors here."""
        assert self._orchestrator is not None
        embedding = self._orchestrator.embedding or {}
        return str(embedding.get("model", "")).partition("@")[0]

    def _settings(self) -> Settings:
        forget_surroundings(os.environ)
        return load(self._config, os.environ, {"storage.data": str(self.folder)})

    def _supervise(
        self, programs: Sequence[Program]
    ) -> tuple[Supervisor, tuple[threading.Event, list[BaseException]]]:
        done, failed = threading.Event(), list[BaseException]()

        async def make() -> Supervisor:
            return Supervisor(
                programs,
                _Silence(),
                backoff=Backoff(first_s=0.05, slow_start_s=READY_WITHIN_S),
                randomness=random.Random(),
            )

        async def keep(supervisor: Supervisor) -> None:
            try:
                await supervisor.run()
            except BaseException as error:
                failed.append(error)
            finally:
                done.set()

        supervisor = asyncio.run_coroutine_threadsafe(make(), self._loop).result(READY_WITHIN_S)
        asyncio.run_coroutine_threadsafe(keep(supervisor), self._loop)
        self._supervisors.append(supervisor)
        self._running.append((done, failed))
        return supervisor, (done, failed)

    def _wait(
        self,
        supervisor: Supervisor,
        running: tuple[threading.Event, list[BaseException]],
        within_s: float,
        name: str,
    ) -> None:
        done, failed = running
        pause = threading.Event()
        for _ in range(int(within_s / LOOK_S)):
            if all(standing.ever_ready.is_set() for standing in supervisor.standings):
                return
            if done.is_set():
                break
            pause.wait(LOOK_S)
        reason = failed[0] if failed else "it took too long"
        if isinstance(reason, StartFailed):
            log = reason.program.log_path
            reason = log.read_text(errors="replace")[-2000:] if log.exists() else reason
        raise Failure(
            "start_failed", f"{name} did not start: {reason}", "`recollect doctor` helps."
        )


class _Silence:
    """Says nothing of the processes: the story tells, and their logs have the rest."""

    def ready(self, program: Program, pid: int, *, again: bool) -> None: ...
    def slow(self, program: Program, waited_s: float) -> None: ...
    def ended(self, program: Program, how: str, ends_in_a_row: int, pause_s: float) -> None: ...
    def stopping(self) -> None: ...
    def killed(self, program: Program) -> None: ...


def forget_surroundings(environ: MutableMapping[str, str]) -> None:
    """Leave out what would lead the demo to a system that somebody works with."""
    for name in [*environ]:
        if name.startswith("RECOLLECT_") and not name.startswith(KEPT_VARIABLES):
            del environ[name]
