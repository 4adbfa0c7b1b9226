"""The line to the orchestrator: every operation in the name of its caller."""

from __future__ import annotations

from typing import TypeVar

from recollect.client import AsyncMemoryClient, Breaker, Timeouts
from recollect.client.encoding import Speaker
from recollect.client.places import Find, Place
from recollect.gateway.callers import unauthenticated
from recollect.protocol.operation import Operation
from recollect.protocol.operations import Ping

R = TypeVar("R")

AGENT_ID = "recollect-gateway"
# What one caller brings on itself must not open the circuit for all: each attempt has its deadline.
NO_BREAKER = Breaker(fail_max=1_000_000)
OURSELVES = Speaker(agent=AGENT_ID)


class Backend:
    """One client of the orchestrator for all callers, made anew when it comes back elsewhere.

    Lives on the event loop.
    """

    def __init__(
        self, find: Find, *, timeout_s: float, connect_s: float = 1.0, lends_key: bool = False
    ) -> None:
        """`lends_key`: whether who has no bearer key speaks with the key by which we come in, as
        is right where all of them are who started this process."""
        self._find = find
        self._lends_key = lends_key
        self._timeouts = Timeouts(call_s=timeout_s, connect_s=connect_s)
        self._place = find()
        self._client = self._connect(self._place)

    def _connect(self, place: Place) -> AsyncMemoryClient:
        return AsyncMemoryClient(
            place.endpoint,
            key_file=place.key_file,
            agent_id=AGENT_ID,
            timeouts=self._timeouts,
            breaker=NO_BREAKER,
        )

    @property
    def endpoint(self) -> str:
        """Where the orchestrator was found last."""
        return self._place.endpoint

    @property
    def has_key(self) -> bool:
        """Whether the orchestrator asks the gateway itself for a key."""
        return self._place.key_file is not None

    async def ask(self, operation: Operation[R], speaker: Speaker) -> R:
        """Carry out an operation for somebody; raises its error.

        Who was let in without a key is asked for one here again: while its request was read, or its
        stream was open, the orchestrator may have begun to ask for keys, and ours is not theirs.
        """
        if speaker.bearer is None and self.has_key and not self._lends_key:
            raise unauthenticated("The orchestrator asks for keys by now")
        return await self._client.call(operation, speaker=speaker)

    async def ping(self, timeout_s: float) -> None:
        """Ask in our own name whether the orchestrator is there; raises what stands against it."""
        await self._client.call(Ping(timeout=timeout_s), speaker=OURSELVES)

    async def follow(self) -> None:
        """Connect to where the orchestrator is, if it has moved or asks for keys by now."""
        place = self._find()
        if place != self._place:
            former, self._client = self._client, self._connect(place)
            self._place = place
            await former.close()

    async def close(self) -> None:
        await self._client.close()
