"""Recollect: one shared, durable memory for a fleet of AI agents.

    from recollect import MemoryClient

    with MemoryClient(agent_id="planner") as memory:
        memory.add_memory("Anna prefers green tea", tags=["anna"])
        print(memory.recall("what does Anna drink?")["results"][0]["content"])

`AsyncMemoryClient` is the same for asyncio. `Timeouts`, `Retry`, `Breaker` and `Pool` say how a
client behaves. Every error is a `RecollectError`; `recollect.errors` holds all of them, and
`recollect.testing` gives your tests an orchestrator of their own.
"""

from typing import TYPE_CHECKING, Any

from recollect._version import VERSION as __version__

if TYPE_CHECKING:
    from recollect import errors
    from recollect.client import AsyncMemoryClient, Breaker, MemoryClient, Pool, Retry, Timeouts
    from recollect.errors import RecollectError

__all__ = [
    "AsyncMemoryClient",
    "Breaker",
    "MemoryClient",
    "Pool",
    "RecollectError",
    "Retry",
    "Timeouts",
    "__version__",
    "errors",
]


# The client takes longer to come in than many a command takes to run, and not all of them need it.
def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    errors = import_module("recollect.errors")
    if name == "errors":
        return errors
    home = errors if name == "RecollectError" else import_module("recollect.client")
    found = globals()[name] = getattr(home, name)
    return found


def __dir__() -> list[str]:
    return __all__
