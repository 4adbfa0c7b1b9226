"""How many files and connections this process may have open at once."""

from __future__ import annotations

import resource

import structlog

log = structlog.get_logger()


def allow_descriptors(wanted: int) -> int:
    """Have the system allow so many, or as many as it may be asked for; how many it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft < wanted:
        log.warning(
            "Fewer connections are allowed than may be needed: raise the limit of open files "
            "(`ulimit -Hn`, or LimitNOFILE of the service).",
            action="descriptors",
            allowed=soft,
            wanted=wanted,
        )
    return soft
