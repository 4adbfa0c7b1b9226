"""The lightweight client of the memory orchestrator, blocking and for asyncio."""

from recollect.client.asyncio_client import AsyncMemoryClient
from recollect.client.blocking import MemoryClient
from recollect.client.settings import Breaker, Pool, Retry, Timeouts

__all__ = ["AsyncMemoryClient", "Breaker", "MemoryClient", "Pool", "Retry", "Timeouts"]
