"""Where there are several orchestrators: does each of them answer?"""

from __future__ import annotations

import asyncio

from recollect.client import AsyncMemoryClient, Timeouts
from recollect.client.endpoints import split
from recollect.client.places import Find, Place
from recollect.health.clients import AGENT_ID, ALWAYS, ONCE
from recollect.health.probes.probe import NotWatched
from recollect.health.states import Finding
from recollect.protocol.errors import RecollectError
from recollect.protocol.operations import Ping


class EndpointsProbe:
    """Pings each of several endpoints, whichever the others of us ask."""

    name = "endpoints"
    through_orchestrator = False

    def __init__(self, find: Find, *, interval_s: float, timeout_s: float) -> None:
        self._find = find
        self.interval_s = interval_s
        self.timeout_s = timeout_s + 1.0
        self._asked_s = timeout_s
        self._place: Place | None = None
        self._clients: dict[str, AsyncMemoryClient] = {}

    async def look(self) -> Finding:
        place = self._find()
        if place != self._place:
            await self.close()
            self._place = place
        endpoints = tuple(split(place.endpoint))
        if len(endpoints) < 2:
            raise NotWatched
        answers = await asyncio.gather(*(self._ping(place, one) for one in endpoints))
        silent = [one for one, answers in zip(endpoints, answers, strict=True) if not answers]
        reasons = tuple(f"No orchestrator answers at {endpoint}." for endpoint in silent)
        details = {"endpoints": len(endpoints), "silent": silent}
        # As long as one of them answers, everything goes on: that is never `down`.
        return Finding("degraded" if silent else "healthy", reasons, details)

    async def _ping(self, place: Place, endpoint: str) -> bool:
        if endpoint not in self._clients:
            self._clients[endpoint] = AsyncMemoryClient(
                endpoint,
                key_file=place.key_file,
                agent_id=AGENT_ID,
                timeouts=Timeouts(call_s=self._asked_s, connect_s=self._asked_s),
                retry=ONCE,
                breaker=ALWAYS,
            )
        try:
            await self._clients[endpoint].call(Ping())
        except RecollectError:
            return False
        return True

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()
