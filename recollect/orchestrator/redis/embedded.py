"""A redis-server of the orchestrator's own: started, watched, started again, and gone with it.

Nothing waits for it but at the start, in bounded time: without it the orchestrator goes on, and
takes it up whenever it is there.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from contextlib import suppress

import structlog

from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.redis import guard, leftovers
from recollect.orchestrator.redis.home import Home

log = structlog.get_logger()

LOOK_S = 0.25
READY_POLL_S = 0.005
READY_WITHIN_S = 10.0
ANSWERED_WITHIN_S = 1.0
HUNG_S = 10.0
"""A server that is silent for so long is replaced."""
PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 5.0
SETTLED_S = 30.0
"""A server that ran so long ran well: the pauses begin anew."""
ENDED_WITHIN_S = 3.0


class EmbeddedServer:
    """Keeps one server running from `begin` to `stop`. Lives on the event loop."""

    def __init__(
        self,
        program: str,
        home: Home,
        memory_mb: int,
        *,
        answered: Callable[[], None],
        fell: Callable[[str], None],
    ) -> None:
        """`answered` is called whenever a server that was just started answers, and `fell` with
        the reason when one is no longer there."""
        self._program = program
        self._home = home
        self._memory_mb = memory_mb
        self._answered = answered
        self._fell = fell
        self._guard: subprocess.Popen[bytes] | None = None
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why there is none just now."""

    def begin(self) -> None:
        """Start it beside everything else."""
        self._task = asyncio.create_task(self._run())

    async def tried(self, within_s: float) -> None:
        """Wait until the first start has come to something, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._tried.wait()

    async def stop(self) -> None:
        """End it; nothing of it is left."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await to_the_end(self._end)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = PAUSE_S_MIN
        while True:
            began_s = loop.time()
            try:
                await self._serve()
                reason = "it ended"
            except Exception as error:  # whatever it is, the orchestrator goes on without
                reason = f"{type(error).__name__}: {error}"
            await to_the_end(self._end)
            self._tried.set()
            if loop.time() - began_s > SETTLED_S:
                pause_s = PAUSE_S_MIN
            first = self.failure is None or pause_s == PAUSE_S_MIN
            self.failure = f"The embedded redis-server is being started again: {reason}."
            if first:
                self._fell(self.failure)
                log.warning(
                    "The embedded Redis is not there and is started again.",
                    action="redis",
                    reason=reason,
                    log=str(self._home.log),
                )
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _serve(self) -> None:
        """Start a server and return when it has ended."""
        started = await to_the_end(self._start)
        await self._until_ready(started)
        self.failure = None
        self._tried.set()
        self._answered()
        log.info("The embedded Redis is ready.", action="redis", program=self._program)
        loop = asyncio.get_running_loop()
        heard_s = looked_s = loop.time()
        while started.poll() is None:
            await asyncio.sleep(LOOK_S)
            now_s = loop.time()
            if now_s - looked_s < ANSWERED_WITHIN_S:
                continue
            looked_s = now_s
            if await self._answers():
                heard_s = loop.time()
            elif now_s - heard_s > HUNG_S:
                raise TimeoutError("it did not answer any more")

    async def _until_ready(self, started: subprocess.Popen[bytes]) -> None:
        async with asyncio.timeout(READY_WITHIN_S):
            while not await self._answers():
                if started.poll() is not None:
                    raise ChildProcessError("it ended before it was ready, see its log")
                await asyncio.sleep(READY_POLL_S)

    async def _answers(self) -> bool:
        """Whether it says something."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                reader, writer = await asyncio.open_unix_connection(str(self._home.socket))
                try:
                    writer.write(b"PING\r\n")
                    return await reader.readline() == b"+PONG\r\n"
                finally:
                    writer.close()
        return False

    def _start(self) -> subprocess.Popen[bytes]:
        self._home.make()
        leftovers.clear(self._home)
        self._guard = guard.start(self._program, self._home, self._memory_mb)
        return self._guard

    def _end(self) -> None:
        """Have the guard end the server, and do it ourselves if the guard is gone."""
        ending, self._guard = self._guard, None
        if ending is None:
            return
        assert ending.stdin is not None
        ending.stdin.close()
        try:
            ending.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            ending.kill()
            ending.wait()
        leftovers.clear(self._home)
        with suppress(OSError):
            self._home.folder.rmdir()
