"""The lease by which one scheduler at a time is at work."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket

import structlog

from recollect.protocol.errors import LeaseLost, RecollectError
from recollect.protocol.operations import SCHEDULER_LEASE
from recollect.scheduler.connecting import Lines

log = structlog.get_logger()

CALL_S = 5.0
RELEASE_S = 2.0
ATTEMPTS_A_TTL = 3
PAUSE_S_MAX = 5.0
SILENCE_S_MIN = 30.0
SILENT_TTLS = 3


def holder_name() -> str:
    """A name that no other scheduler has."""
    host = "".join(c if c.isascii() and c.isalnum() else "-" for c in socket.gethostname())
    return f"{host[:60].strip('-') or 'host'}-{os.getpid()}-{secrets.token_hex(4)}"


class Leadership:
    """Takes the lease, keeps it, and gives it back. What the other client writes is fenced by it.

    Whether the lease is held, the orchestrator says: as long as it is away nobody else can take it
    either, and so the scheduler goes on when it is back.
    """

    def __init__(self, lines: Lines, ttl_s: float, holder: str) -> None:
        self.holder = holder
        self._lines = lines
        self._ttl_s = ttl_s
        self._token: int | None = None
        # So that no renewal comes between a new token and its being known.
        self._lock = asyncio.Lock()

    @property
    def interval_s(self) -> float:
        """How long to wait between two attempts to get or to keep the lease."""
        return min(self._ttl_s / ATTEMPTS_A_TTL, PAUSE_S_MAX)

    async def try_once(self) -> bool:
        """Whether the lease was given to this scheduler."""
        async with self._lock:
            answer = await self._lines.plain.acquire_lease(
                SCHEDULER_LEASE, self.holder, self._ttl_s, timeout=CALL_S
            )
            if not answer["acquired"]:
                return False
            assert answer["token"] is not None
            self._token = answer["token"]
            self._lines.fenced.set_fence(SCHEDULER_LEASE, self._token)
            return True

    async def keep(self) -> None:
        """Renew the lease until it is lost, or nobody has answered for long: then LeaseLost ends
        this, and where the orchestrator is will be looked for anew."""
        loop = asyncio.get_running_loop()
        heard_s = loop.time()
        while True:
            await asyncio.sleep(self.interval_s)
            async with self._lock:
                if self._token is None:
                    raise LeaseLost("The lease was given back.")
                try:
                    await self._lines.plain.renew_lease(
                        SCHEDULER_LEASE, self.holder, self._token, self._ttl_s, timeout=CALL_S
                    )
                    heard_s = loop.time()
                except LeaseLost:
                    raise
                except RecollectError as error:
                    log.warning("The lease was not renewed.", action="lease", reason=error.message)
                    if loop.time() - heard_s > max(SILENCE_S_MIN, SILENT_TTLS * self._ttl_s):
                        raise LeaseLost("The orchestrator has not answered for long.") from error

    async def take_anew(self) -> None:
        """Get a new token, so that what was begun under the old one has no effect any more."""
        while True:
            try:
                if await self.try_once():
                    return
                raise LeaseLost("Somebody else has taken the lease.")
            except LeaseLost:
                raise
            except RecollectError as error:
                log.warning("The lease was not taken.", action="lease", reason=error.message)
            await asyncio.sleep(self.interval_s)

    async def release(self) -> None:
        """Give the lease back, if it is held and the orchestrator is there."""
        async with self._lock:
            token, self._token = self._token, None
            if token is None:
                return
            try:
                async with asyncio.timeout(RELEASE_S):
                    await self._lines.plain.release_lease(
                        SCHEDULER_LEASE, self.holder, token, timeout=RELEASE_S
                    )
            except (RecollectError, TimeoutError) as error:
                log.warning("The lease runs out by itself.", action="lease", reason=str(error))

    def lost(self) -> None:
        """Forget a lease that somebody else has."""
        self._token = None
        self._lines.fenced.clear_fence()
