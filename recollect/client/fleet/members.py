"""One orchestrator of several, as a client knows it."""

from __future__ import annotations

from typing import NamedTuple

from recollect.client.breaker import CircuitGuard, EndpointStatus, Permit, endpoint_status
from recollect.client.server_clock import ServerClock
from recollect.protocol.errors import (
    ConnectionLost,
    ShuttingDown,
    Unreachable,
)

# Whoever says one of these cannot be asked just now, whatever the question.
GONE = (Unreachable, ConnectionLost, ShuttingDown)


class Member:
    """What is known of one orchestrator. The fleet changes it, under its lock."""

    __slots__ = (
        "away",
        "changes",
        "endpoint",
        "failed_at_s",
        "guard",
        "load",
        "probe_at_s",
        "probes",
        "server_clock",
        "waits",
        "why",
    )

    def __init__(self, endpoint: str, guard: CircuitGuard, server_clock: ServerClock) -> None:
        self.endpoint = endpoint
        self.guard = guard
        self.server_clock = server_clock
        self.load = 0
        """Calls under way there."""
        self.waits = 0
        """Requests under way there that are no load, because they only wait."""
        self.forget()

    def forget(self) -> None:
        """Think well of it again."""
        self.away = False
        """Whether it is left alone as long as there is another."""
        self.changes = 0
        """How often it went and came: what was begun before the last time tells nothing of now."""
        self.failed_at_s = 0.0
        self.probe_at_s = 0.0
        self.probes = 0
        self.why: str | None = None
        """What it last failed with, as long as it is away."""

    def status(self) -> EndpointStatus:
        """Its part of the breaker's status."""
        found = endpoint_status(self.endpoint, self.guard.status(), healthy=not self.away)
        if self.why is not None:
            found["last_error"] = self.why
        return found


class Choice(NamedTuple):
    """Whom to ask this time. Its holder says to the fleet how that went."""

    member: Member
    changes: int
    permit: Permit | None
    """None for what has no part in the circuit breaker."""
