"""The two clients of a scheduler: one that writes under its lease, and one that does not."""

from __future__ import annotations

from recollect.client import AsyncMemoryClient
from recollect.client.places import Find, Place

AGENT = "scheduler"


class Lines:
    """Both clients, made anew when the orchestrator is somewhere else. Lives on the event loop."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._connect(find())

    def _connect(self, place: Place) -> None:
        plain = AsyncMemoryClient(place.endpoint, key_file=place.key_file, agent_id=AGENT)
        fenced = AsyncMemoryClient(place.endpoint, key_file=place.key_file, agent_id=AGENT)
        self._place = place
        self.plain = plain
        """For what is not done under the lease: asking for it, and looking."""
        self.fenced = fenced

    async def follow(self) -> None:
        """Connect to where the orchestrator is, if it has moved or asks for keys by now."""
        place = self._find()
        if place != self._place:
            former = (self.fenced, self.plain)
            self._connect(place)
            for client in former:
                await client.close()

    async def close(self) -> None:
        await self.fenced.close()
        await self.plain.close()
