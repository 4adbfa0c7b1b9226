"""What the orchestrator has of Redis: where it is, whether it answers, and how it is.

One breaker stands before all uses: what one of them finds out, all know. Requests ask it and never
try a Redis that is away; only tasks in the background do, and so find out that it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import structlog

from recollect.config.settings import Settings
from recollect.orchestrator.outside.breaker import Breaker
from recollect.orchestrator.redis.embedded import EmbeddedServer
from recollect.orchestrator.redis.home import home_in
from recollect.orchestrator.redis.program import HOW_TO_GET_ONE, find_program
from recollect.orchestrator.troubles.trouble import Trouble, from_threads, unheard

log = structlog.get_logger()

Mode = Literal["embedded", "url", "off"]
UNAVAILABLE = "redis_unavailable"
START_S = 2.0
"""How long a start waits for the embedded server; it takes some hundredths of a second."""


class RedisLink:
    """Redis as it is configured. Made, started and stopped on the event loop; whether it answers
    may be asked and told from any thread."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """`clock` is monotonic."""
        self.mode: Mode = "url"
        self.url: str | None = settings.redis.url
        """Where it is; None without one."""
        self.timeout_s = settings.redis.timeout_ms / 1000
        self.breaker = Breaker(
            fail_max=settings.circuit_breaker.fail_max,
            reset_s=settings.circuit_breaker.reset_timeout_s,
            clock=clock,
        )
        self.trouble: Trouble = unheard
        # The same for any thread, once it is known on which loop it is heard.
        self._tell: Trouble = unheard
        self._failure: str | None = None
        self._missing: str | None = None
        self._server: EmbeddedServer | None = None
        if self.url == "off":
            self.mode, self.url = "off", None
        elif self.url == "embedded":
            self.mode = "embedded"
            self._embed(settings)

    def _embed(self, settings: Settings) -> None:
        program = find_program()
        if program is None:
            self.url = None
            self._missing = "There is no redis-server on this machine."
            log.warning(f"{self._missing} It goes on without: {HOW_TO_GET_ONE}", action="redis")
            return
        home = home_in(Path(settings.storage.data))
        self.url = home.url
        self._server = EmbeddedServer(
            program,
            home,
            settings.redis.embedded_mb,
            answered=self.succeeded,
            fell=lambda reason: self._tell(UNAVAILABLE, reason),
        )

    @property
    def private(self) -> bool:
        """Whether nobody else can have anything in it."""
        return self.mode == "embedded"

    def usable(self) -> bool:
        """Whether a request may ask it: it is there, as far as is known."""
        return self.url is not None and not self.breaker.is_open()

    def begin(self) -> None:
        """Have the embedded server started beside everything else."""
        self._tell = from_threads(asyncio.get_running_loop(), lambda: self.trouble)
        if self._server is not None:
            self._server.begin()

    async def tried(self) -> None:
        """Wait, in bounded time, until it is known whether the embedded server is there."""
        if self._server is not None:
            await self._server.tried(START_S)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()

    def succeeded(self) -> None:
        """It did what was asked."""
        was_away = self.breaker.is_open()
        self.breaker.succeeded()
        self._failure = None
        if was_away:
            log.info("Redis answers again.", action="redis")

    def failed(self, error: BaseException) -> None:
        """It did not answer, or could not do what was asked.

        That happens now and then where a machine is busy; it is away when it does so in a row.
        """
        was_away = self.breaker.is_open()
        self.breaker.failed()
        # Without the address, which is not for everybody.
        self._failure = f"Redis does not answer ({type(error).__name__})."
        if self.breaker.is_open() and not was_away:
            log.warning(
                "Redis does not answer; it goes on without.",
                action="redis",
                reason=f"{type(error).__name__}: {error}",
            )
            self._tell(UNAVAILABLE, self._failure)

    def describe(self) -> dict[str, Any]:
        """For `stats`; nothing here waits."""
        reason = self._missing or (self._server and self._server.failure)
        if reason is None and self.breaker.is_open():
            reason = self._failure or "Redis does not answer."
        return {
            "mode": self.mode,
            "state": "off" if self.url is None else "degraded" if reason else "ok",
            "reason": reason,
            "breaker": self.breaker.describe(),
        }
