"""Connections to Redis that never try twice by themselves: whoever waits has waited long enough."""

from __future__ import annotations

from typing import Any

try:
    from redis import Redis as BlockingRedis
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.retry import Retry as BlockingRetry
except ImportError as missing:  # pragma: no cover - depends on what is installed
    raise ImportError("redis.url needs redis: pip install 'recollect[server]'") from missing

CONNECT_S_MIN = 1.0
"""On the event loop nobody waits for a connection but the task that makes it."""


def on_loop(url: str, timeout_s: float) -> Any:
    """A client with one connection for one task on the event loop.

    It is untyped because its types differ from version to version.
    """
    return Redis.from_url(
        url,
        protocol=2,
        socket_timeout=timeout_s,
        socket_connect_timeout=max(timeout_s, CONNECT_S_MIN),
        retry=Retry(NoBackoff(), 0),
        retry_on_timeout=False,
        max_connections=1,
    )


def in_threads(url: str, timeout_s: float, connections_max: int) -> Any:
    """A client for threads, in each of which a request waits."""
    return BlockingRedis.from_url(
        url,
        protocol=2,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=BlockingRetry(NoBackoff(), 0),
        retry_on_timeout=False,
        max_connections=connections_max,
    )
