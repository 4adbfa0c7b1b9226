"""What the adapters of asyncio frameworks do alike: have clients, follow steps with them, close."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar

from recollect.integrations.clients import Clients
from recollect.integrations.steps import Steps, afollow

R = TypeVar("R")


class AsyncAdapter:
    """One adapter, which serves any number of event loops."""

    def __init__(self, endpoint: str | None = None, **options: Any) -> None:
        """Make it; endpoint and options are those of AsyncMemoryClient."""
        self._clients = Clients(endpoint, options)

    async def aclose(self) -> None:
        """Close the connection of the running loop."""
        await self._clients.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _follow(self, steps: Steps[R]) -> R:
        return await afollow(await self._clients.awaiting(), steps)
