"""The scheduler as a process: stands by until it has the lease, works while it has it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

import structlog

from recollect._version import VERSION
from recollect.client.places import Find
from recollect.config import Settings
from recollect.protocol.errors import LeaseLost, RecollectError
from recollect.scheduler.connecting import Lines
from recollect.scheduler.leadership import Leadership, holder_name
from recollect.scheduler.term import Term

log = structlog.get_logger()

Announce = Callable[[dict[str, Any]], None]


class Scheduler:
    """One scheduler among those that there may be. Lives on the event loop."""

    def __init__(self, settings: Settings, find: Find, announce: Announce) -> None:
        """`announce` leaves word of the process for others to find."""
        self._settings = settings
        self._announce = announce
        self._state = ""
        self._lines = Lines(find)
        self._leadership = Leadership(self._lines, settings.scheduler.lease_ttl_s, holder_name())

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until told to stop, whatever becomes of the orchestrator."""
        self._enter("starting")
        serving = asyncio.create_task(self._serve())
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((serving, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (serving, stop):
                task.cancel()
            await asyncio.gather(serving, stop, return_exceptions=True)
            await self._leadership.release()
            await self._lines.close()
        if not serving.cancelled() and (error := serving.exception()) is not None:
            raise error

    async def _serve(self) -> None:
        while True:
            await self._stand_by()
            self._enter("leading")
            try:
                await Term(self._lines, self._leadership, self._settings).serve()
            except LeaseLost as lost:
                log.warning("Another scheduler is at work.", action="lease", reason=lost.message)
            except RecollectError as error:
                log.error("The orchestrator refused.", action="lease", reason=error.message)
                await self._leadership.release()
                await asyncio.sleep(self._leadership.interval_s)
            self._leadership.lost()

    async def _stand_by(self) -> None:
        """Return once the lease is this scheduler's."""
        reason = ""
        while True:
            try:
                if await self._leadership.try_once():
                    return
                self._enter("standby")
                reason = ""
            except RecollectError as error:
                if error.code != reason:
                    reason = error.code
                    log.warning("No lease can be had.", action="lease", reason=error.message)
                await self._follow()
            await asyncio.sleep(self._leadership.interval_s)

    async def _follow(self) -> None:
        try:
            await self._lines.follow()
        except (RecollectError, OSError, ValueError) as error:
            # Of a key file that is exchanged just now, say. The next look finds another.
            log.warning("The orchestrator is not found.", action="follow", reason=str(error))

    def _enter(self, state: str) -> None:
        if state != self._state:
            self._state = state
            holder = self._leadership.holder
            log.info(f"The scheduler is {state}.", action="state", state=state, holder=holder)
            self._announce({"state": state, "holder": holder, "version": VERSION})


async def serve(settings: Settings, find: Find, announce: Announce) -> int:
    """Run until SIGTERM or SIGINT; the exit code."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await Scheduler(settings, find, announce).run(stopping)
    log.info("Stopped.", action="stop")
    return 0
