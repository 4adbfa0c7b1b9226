"""Recollect: one shared, durable memory for a fleet of AI agents."""

from recollect._version import VERSION as __version__
from recollect.client import AsyncMemoryClient, MemoryClient
from recollect.protocol.errors import RecollectError

__all__ = ["AsyncMemoryClient", "MemoryClient", "RecollectError", "__version__"]
