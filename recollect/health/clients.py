"""The line to the orchestrator: found anew when the orchestrator comes back at another place."""

from __future__ import annotations

from typing import Protocol, TypeVar

from recollect.client import AsyncMemoryClient, Breaker, Retry, Timeouts
from recollect.client.places import Find, Place
from recollect.protocol.operation import Operation

R = TypeVar("R")

AGENT_ID = "recollect-health"
OWN_SOURCE = f"client:{AGENT_ID}"
# A probe is a question of its own each time: nothing is repeated, and no circuit hides the answer.
ONCE = Retry(attempts_max=1)
ALWAYS = Breaker(fail_max=1_000_000)


class Line(Protocol):
    """What a probe needs to ask the orchestrator."""

    @property
    def endpoint(self) -> str:
        """Where the orchestrator was found last."""
        ...

    async def call(self, operation: Operation[R]) -> R:
        """Carry out an operation; raises its error."""
        ...


class Clients:
    """Clients of the orchestrator. Lives on the event loop."""

    def __init__(self, find: Find, *, timeout_s: float, connect_s: float) -> None:
        self.find = find
        """Says where the orchestrator is right now, or several are."""
        self._timeouts = Timeouts(call_s=timeout_s, connect_s=connect_s)
        self._place: Place | None = None
        self._client: AsyncMemoryClient | None = None

    async def client(self) -> AsyncMemoryClient:
        """A client of the orchestrator where it is now. It is this process's: do not close it."""
        place = self.find()
        if self._client is None or place != self._place:
            await self.close()
            self._client = AsyncMemoryClient(
                place.endpoint,
                # Figures are those of one orchestrator, and compared with its own of before.
                spread=False,
                key_file=place.key_file,
                agent_id=AGENT_ID,
                timeouts=self._timeouts,
                retry=ONCE,
                breaker=ALWAYS,
            )
            self._place = place
        return self._client

    async def call(self, operation: Operation[R]) -> R:
        """Carry out an operation; raises its error."""
        return await (await self.client()).call(operation)

    @property
    def endpoint(self) -> str:
        """Where the orchestrator was found last."""
        return self.find().endpoint if self._place is None else self._place.endpoint

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
