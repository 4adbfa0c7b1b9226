"""Whether there is a Redis as configured. Its address may hold a password and is not shown."""

from __future__ import annotations

import contextlib

from recollect.cli.findings import Finding, ok, warn
from recollect.config.settings import RedisSettings
from recollect.orchestrator.redis.program import HOW_TO_GET_ONE, find_program

ANSWERED_WITHIN_S = 2.0


def check_redis(settings: RedisSettings) -> Finding:
    """What is found of it; nothing here fails, since everything goes on without Redis."""
    if settings.url == "off":
        return ok("redis", "Without Redis, as redis.url says.")
    if settings.url == "embedded":
        program = find_program()
        if program is None:
            advice = HOW_TO_GET_ONE[0].upper() + HOW_TO_GET_ONE[1:]
            return warn("redis", "There is no redis-server: it goes on without.", advice)
        return ok("redis", f"A server of its own, from {program}.")
    from recollect.orchestrator.redis.connecting import in_threads  # needs its package

    try:
        with contextlib.closing(in_threads(settings.url, ANSWERED_WITHIN_S, 1)) as client:
            version = client.info("server")["redis_version"]
    except Exception as error:
        return warn(
            "redis",
            f"The Redis of redis.url does not answer ({type(error).__name__}).",
            "Start it, or put the address right; until then it goes on without.",
        )
    return ok("redis", f"The Redis of redis.url answers, version {version}.")


def check_sharing(settings: RedisSettings) -> Finding:
    """Whether several orchestrators of one database would share what is in no database."""
    if settings.url in ("off", "embedded"):
        return warn(
            "sharing",
            "Each orchestrator of this database has the `temp:` state of sessions, echoes and "
            "operational memory to itself.",
            "If there are several, give them one Redis by its address: redis.url: redis://…",
        )
    return ok("sharing", "Orchestrators of this database share by the Redis of redis.url.")
