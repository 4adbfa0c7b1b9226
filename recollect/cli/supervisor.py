"""Keeps named processes running: starts them, starts them again when they end, stops them all.

A process that ends before it was ever ready has something wrong with its settings or its
surroundings, so the first such end stops everything and is reported. Once a process has been ready,
its end is an accident: it is started again, after a pause that grows from one end to the next, for
as long as the supervisor runs.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

READY_POLL_S = 0.05
LOG_BYTES_MAX = 64 * 1024 * 1024
KILLED_WITHIN_S = 10.0


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
    """A process ended before it was ever ready."""

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
    ) -> None:
        self._programs = programs
        self._listener = listener
        self._backoff = backoff or Backoff()
        self._randomness = randomness or random.SystemRandom()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        # The running process of each program.
        self._running: dict[Program, asyncio.subprocess.Process] = {}

    def stop(self) -> None:
        """Stop everything; asked a second time, stop waiting for anybody."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Return when everything has been stopped; raises StartFailed."""
        child_end, own_end = os.pipe()
        stop = asyncio.create_task(self._stop.wait())
        keepers = [asyncio.create_task(self._keep(p, child_end)) for p in self._programs]
        try:
            done, _ = await asyncio.wait({stop, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            if stop in done:
                self._listener.stopping()
        finally:
            for task in (stop, *keepers):
                task.cancel()
            await asyncio.gather(stop, *keepers, return_exceptions=True)
            await asyncio.gather(*(self._end(*item) for item in self._running.items()))
            os.close(child_end)
            os.close(own_end)
        for task in done - {stop}:
            task.result()

    async def _keep(self, program: Program, lifeline: int) -> None:
        loop = asyncio.get_running_loop()
        ends_in_a_row, ever_ready = 0, False
        while True:
            process, log_offset = await _start(program, lifeline)
            self._running[program] = process
            started_s = loop.time()
            if await self._until_ready(program, process):
                self._listener.ready(program, process.pid, again=ever_ready)
                ever_ready = True
            code = await process.wait()
            del self._running[program]
            if not ever_ready:
                raise StartFailed(program, code, log_offset)
            if loop.time() - started_s >= self._backoff.settled_s:
                ends_in_a_row = 0
            ends_in_a_row += 1
            pause_s = self._backoff.pause_s(ends_in_a_row, self._randomness)
            self._listener.ended(program, how_it_ended(code), ends_in_a_row, pause_s)
            await asyncio.sleep(pause_s)

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

    async def _end(self, program: Program, process: asyncio.subprocess.Process) -> None:
        """SIGTERM, then SIGKILL if it takes too long or somebody cannot wait."""
        _signal(process, signal.SIGTERM)
        ended = asyncio.create_task(process.wait())
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            {ended, hurry}, timeout=program.stop_s, return_when=asyncio.FIRST_COMPLETED
        )
        hurry.cancel()
        if not ended.done():
            self._listener.killed(program)
            _signal(process, signal.SIGKILL)
        await asyncio.wait_for(ended, KILLED_WITHIN_S)


async def _start(program: Program, lifeline: int) -> tuple[asyncio.subprocess.Process, int]:
    """The started process, and where in the log it begins to write."""
    path = program.log_path
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))
    with path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *program.command(),
            stdin=lifeline,
            stdout=log,
            stderr=log,
            # Ctrl-C in a terminal goes to every process of the group; this one is ours to stop.
            process_group=0,
        )
        return process, log.tell()


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
