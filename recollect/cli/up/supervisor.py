"""Keeps named processes running: starts them, starts them again when they end, stops them all.

Programs stand in stages: those of a stage are started when all before it were ready once, and
stopped before them. An essential program that ends before it was ever ready has something wrong
with its settings or its surroundings, so that stops everything and is reported. Any other end is
an accident: the program is started again, after a pause that grows from one end to the next, for
as long as the supervisor runs.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from recollect.cli.up import log_files

READY_POLL_S = 0.05
LOGS_LOOK_S = 10.0
KILLED_WITHIN_S = 10.0

State = Literal["waiting", "starting", "ready", "ended", "stopping", "stopped"]


class Program(NamedTuple):
    """A process to keep running."""

    name: str
    command: Callable[[], Sequence[str]]
    """Asked at every start, because a restart may have learned something, such as its port."""
    log_path: Path
    """Takes what it writes to standard output and standard error."""
    is_ready: Callable[[int], Awaitable[bool]]
    """Whether the process of this id does its work."""
    stop_s: float
    """How long it may take to end by itself after SIGTERM."""
    stage: int = 0
    essential: bool = True
    """Whether nothing is to run if it cannot even be started."""


class Standing:
    """How a program stands. Written by the supervisor, read by whoever shows it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.state: State = "waiting"
        self.pid: int | None = None
        self.since_s = 0.0
        """By the clock of the event loop: since when it is in that state."""
        self.restarts = 0
        self.remark = ""
        """How it ended last."""
        self.ever_ready = asyncio.Event()


class Backoff(NamedTuple):
    """How long to wait before a process is started again."""

    first_s: float = 0.2
    factor: float = 2.0
    longest_s: float = 30.0
    settled_s: float = 30.0
    """A process that ran so long ran well: the pauses begin anew."""
    slow_start_s: float = 10.0
    """A process that is not ready after this long is worth a remark."""

    def pause_s(self, ends_in_a_row: int, randomness: random.Random) -> float:
        """The pause after so many ends, with jitter: from half to all of its full length."""
        full = min(self.longest_s, self.first_s * self.factor ** min(ends_in_a_row - 1, 64))
        return full * randomness.uniform(0.5, 1.0)


class Listener(Protocol):
    """Is told what happens to the processes."""

    def ready(self, program: Program, pid: int, *, again: bool) -> None: ...
    def slow(self, program: Program, waited_s: float) -> None: ...
    def ended(self, program: Program, how: str, ends_in_a_row: int, pause_s: float) -> None: ...
    def stopping(self) -> None: ...
    def killed(self, program: Program) -> None: ...


class StartFailed(Exception):
    """An essential process ended before it was ever ready."""

    def __init__(self, program: Program, code: int, log_offset: int) -> None:
        super().__init__(f"{program.name} {how_it_ended(code)} before it was ready")
        self.program = program
        self.code = code
        self.log_offset = log_offset
        """Where in the log this process began to write."""


class Supervisor:
    """Runs programs until it is told to stop. Lives on one event loop."""

    def __init__(
        self,
        programs: Sequence[Program],
        listener: Listener,
        *,
        backoff: Backoff | None = None,
        randomness: random.Random | None = None,
        own_log: Path | None = None,
    ) -> None:
        """`own_log`: takes what this process itself writes, and is bounded with the others."""
        self._own_log = own_log
        self.standings = [Standing(program) for program in programs]
        self._listener = listener
        self._backoff = backoff or Backoff()
        self._randomness = randomness or random.SystemRandom()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        # The running process of each program.
        self._running: dict[Standing, asyncio.subprocess.Process] = {}

    def stop(self) -> None:
        """Stop everything; asked a second time, stop waiting for anybody."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Return when everything has been stopped; raises StartFailed."""
        child_end, own_end = os.pipe()
        stop = asyncio.create_task(self._stop.wait())
        logs = asyncio.create_task(self._bound_logs())
        keepers = [asyncio.create_task(self._keep(s, child_end)) for s in self.standings]
        try:
            done, _ = await asyncio.wait({stop, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            if stop in done:
                self._listener.stopping()
        finally:
            for task in (stop, logs, *keepers):
                task.cancel()
            await asyncio.gather(stop, logs, *keepers, return_exceptions=True)
            await self._end_all()
            os.close(child_end)
            os.close(own_end)
        for task in done - {stop}:
            task.result()

    async def _keep(self, standing: Standing, lifeline: int) -> None:
        await self._until_lower_stages_ready(standing)
        program, ends_in_a_row = standing.program, 0
        loop = asyncio.get_running_loop()
        while True:
            process, log_offset = await _start(program, lifeline)
            self._running[standing] = process
            self._enter(standing, "starting", process.pid)
            started_s = loop.time()
            if await self._until_ready(program, process):
                self._enter(standing, "ready", process.pid)
                self._listener.ready(program, process.pid, again=standing.ever_ready.is_set())
                standing.ever_ready.set()
            code = await process.wait()
            del self._running[standing]
            if program.essential and not standing.ever_ready.is_set():
                raise StartFailed(program, code, log_offset)
            if loop.time() - started_s >= self._backoff.settled_s:
                ends_in_a_row = 0
            ends_in_a_row += 1
            standing.restarts += 1
            standing.remark = how_it_ended(code)
            self._enter(standing, "ended", None)
            pause_s = self._backoff.pause_s(ends_in_a_row, self._randomness)
            self._listener.ended(program, standing.remark, ends_in_a_row, pause_s)
            await asyncio.sleep(pause_s)

    async def _until_lower_stages_ready(self, standing: Standing) -> None:
        for other in self.standings:
            if other.program.stage < standing.program.stage:
                await other.ever_ready.wait()

    async def _until_ready(self, program: Program, process: asyncio.subprocess.Process) -> bool:
        """Whether it became ready before it ended."""
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        remark_s = self._backoff.slow_start_s
        while process.returncode is None:
            if await program.is_ready(process.pid):
                return True
            waited_s = loop.time() - started_s
            if waited_s >= remark_s:
                self._listener.slow(program, waited_s)
                remark_s *= 2
            await asyncio.sleep(READY_POLL_S)
        return False

    async def _end_all(self) -> None:
        """Stage by stage, the last one first: who needs others goes before them."""
        for stage in sorted({s.program.stage for s in self._running}, reverse=True):
            ending = [item for item in self._running.items() if item[0].program.stage == stage]
            await asyncio.gather(*(self._end(*item) for item in ending))

    async def _end(self, standing: Standing, process: asyncio.subprocess.Process) -> None:
        """SIGTERM, then SIGKILL if it takes too long or somebody cannot wait."""
        self._enter(standing, "stopping", process.pid)
        _signal(process, signal.SIGTERM)
        ended = asyncio.create_task(process.wait())
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            {ended, hurry}, timeout=standing.program.stop_s, return_when=asyncio.FIRST_COMPLETED
        )
        hurry.cancel()
        if not ended.done():
            self._listener.killed(standing.program)
            _signal(process, signal.SIGKILL)
        await asyncio.wait_for(ended, KILLED_WITHIN_S)
        self._enter(standing, "stopped", None)

    async def _bound_logs(self) -> None:
        paths = {standing.program.log_path for standing in self.standings}
        if self._own_log is not None:
            paths.add(self._own_log)
        while True:
            await asyncio.to_thread(_bound_all, paths)
            await asyncio.sleep(LOGS_LOOK_S)

    def _enter(self, standing: Standing, state: State, pid: int | None) -> None:
        standing.state, standing.pid = state, pid
        standing.since_s = asyncio.get_running_loop().time()


def _bound_all(paths: Iterable[Path]) -> None:
    for path in paths:
        log_files.bound(path)


async def _start(program: Program, lifeline: int) -> tuple[asyncio.subprocess.Process, int]:
    """The started process, and where in the log it begins to write."""
    with program.log_path.open("ab") as log:
        # Asked before: the process moves the place in the file, which it shares.
        offset = log.tell()
        process = await asyncio.create_subprocess_exec(
            *program.command(),
            stdin=lifeline,
            stdout=log,
            stderr=log,
            # Ctrl-C in a terminal goes to every process of the group; this one is ours to stop.
            process_group=0,
        )
        return process, offset


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # It may have ended just now.
        process.send_signal(number)


def how_it_ended(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
