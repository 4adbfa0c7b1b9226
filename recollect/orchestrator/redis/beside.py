"""Redis beside the orchestrator, as a whole: the link, the cache, the live counters, how it is."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.config.settings import Settings
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.redis.link import RedisLink
from recollect.orchestrator.redis.live import Counters, LiveCounters, summed

if TYPE_CHECKING:
    from recollect.orchestrator.cache.redis import RedisCache
    from recollect.orchestrator.redis.line import Line

LOOK_S = 1.0
FACTS_EVERY = 5
"""Looks after which the server is asked about itself again."""
ANSWERED_WITHIN_S = 1.0
"""Nobody waits for this but the task in the background."""
VECTORS = "vectors"
HOUR_S = 3600


class ServerFacts(msgspec.Struct, frozen=True):
    """What the server says of itself."""

    version: str | None = None
    used_memory_bytes: int | None = None


class RedisBeside:
    """Made, started and stopped on the event loop."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """`clock` is monotonic."""
        self.link = RedisLink(settings, clock)
        self.cache: RedisCache | None = None
        """Vectors of texts; any thread may ask it."""
        if self.link.url is not None and settings.redis.cache_hours > 0:
            from recollect.orchestrator.cache.redis import RedisCache  # needs its package

            self.cache = RedisCache(self.link, settings.redis.cache_hours * HOUR_S)
        self._line: Line | None = None
        self._facts = ServerFacts()
        self._all: list[Counters] = []
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Have the embedded server started beside everything else."""
        self.link.begin()

    async def tried(self) -> None:
        """Wait, in bounded time, until it is known whether the embedded server is there."""
        await self.link.tried()

    def line(self) -> Line | None:
        """What requests ask other orchestrators by; None where they cannot have this Redis too."""
        if self.link.url is not None and not self.link.private and self._line is None:
            from recollect.orchestrator.redis.line import Line  # needs its package

            self._line = Line(self.link)
        return self._line

    def take_part(self, store_id: str, count: Callable[[], Counters]) -> None:
        """Use it for a store, and tell the others what this orchestrator counts."""
        if self.cache is not None:
            self.cache.name(store_id, VECTORS)
        if self._line is not None:
            self._line.start(store_id)
        if self.link.url is not None:
            self._task = asyncio.create_task(self._look_after(store_id, count))

    async def forget_vectors(self) -> None:
        """Something was purged: no vector of any text is kept. Without Redis, when it is back."""
        if self.cache is not None:
            await to_the_end(self.cache.clear)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self.cache is not None:
            self.cache.close()
        if self._line is not None:
            await self._line.stop()
        await self.link.stop()

    def describe(self) -> dict[str, Any]:
        """For `stats` and `metrics`: what is known already, so that nobody waits for it."""
        described = self.link.describe()
        well = described["state"] == "ok"
        nothing = {"hits": 0, "misses": 0, "errors": 0}
        return {
            **described,
            "shared": self._line is not None,
            "server_version": self._facts.version,
            "used_memory_bytes": self._facts.used_memory_bytes if well else None,
            "cache": nothing if self.cache is None else self.cache.describe(),
            # What is known of others is no longer true when they cannot be heard.
            "orchestrators": max(1, len(self._all)) if well else 1,
            "together": summed(self._all) if well and self._all else None,
        }

    async def _look_after(self, store_id: str, count: Callable[[], Counters]) -> None:
        """Once a second, while it answers: tell and hear the counters, do what was left undone."""
        from recollect.orchestrator.redis.connecting import on_loop  # needs its package

        assert self.link.url is not None
        client = on_loop(self.link.url, ANSWERED_WITHIN_S)
        live = LiveCounters(client, store_id, uuid.uuid4().hex)
        looks = 0
        try:
            while True:
                if self.link.usable():
                    try:
                        await self._look(client, live, count(), facts=looks % FACTS_EVERY == 0)
                        looks += 1
                        self.link.succeeded()
                    except Exception as error:  # whatever it is, nothing here may end
                        self.link.failed(error)
                        looks = 0
                await asyncio.sleep(LOOK_S)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    if self.link.usable():
                        await live.leave()
                    await client.aclose()

    async def _look(
        self, client: Any, live: LiveCounters, counters: Counters, *, facts: bool
    ) -> None:
        self._all = await live.write(counters)
        if facts:
            server, memory = await client.info("server"), await client.info("memory")
            self._facts = ServerFacts(server.get("redis_version"), memory.get("used_memory"))
        if self.cache is not None and self.cache.unclear:
            await to_the_end(self.cache.clear_if_need_be)
