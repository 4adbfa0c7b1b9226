"""How the parts of a client are made, without the client: what makes further ones later, such as a
line to one more endpoint, must not keep alive a client that nobody has any more."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from recollect.client.calling import Planner, Plans
from recollect.client.keys import Keys
from recollect.client.reporting import ErrorBuffer
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Breaker, Pool, Retry, Timeouts

if TYPE_CHECKING:
    import pybreaker

    from recollect.client.async_transport import AsyncTransport
    from recollect.client.breaker import CircuitGuard
    from recollect.client.fleet.choosing import Fleet
    from recollect.client.fleet.probing import Probes
    from recollect.client.transport import Requests, Transport


class Making(NamedTuple):
    """What the parts of one client have in common."""

    keys: Keys | None
    timeouts: Timeouts
    timeout_s: float
    retry: Retry
    breaker: Breaker
    pool: Pool
    listeners: Sequence[pybreaker.CircuitBreakerListener]
    clock: Callable[[], float]
    randomness: random.Random
    server_clock: ServerClock
    errors: ErrorBuffer

    def guard(self, name: str = "recollect") -> CircuitGuard:
        """A circuit breaker."""
        # pybreaker imports redis wherever that is installed, which takes long: not before needed.
        from recollect.client.breaker import CircuitGuard

        return CircuitGuard(
            self.breaker,
            clock=self.clock,
            listeners=self.listeners,
            on_open=partial(self.errors.add, "circuit_breaker"),
            name=name,
        )

    def planner(self, guard: CircuitGuard) -> Planner:
        """What makes the plans for one endpoint."""
        return Planner(
            guard=guard,
            retry=self.retry,
            timeout_s=self.timeout_s,
            server_clock=self.server_clock,
            clock=self.clock,
            randomness=self.randomness,
            notice=self.errors.add,
        )

    def fleet(self, endpoints: Sequence[str], *, spread: bool) -> Fleet:
        """What is known of several endpoints."""
        from recollect.client.fleet.choosing import Fleet

        return Fleet(
            endpoints,
            make_guard=self.guard,
            make_server_clock=partial(ServerClock, self.clock, time.time),
            spread=spread,
            clock=self.clock,
            randomness=self.randomness,
        )

    def fleet_planner(self, fleet: Fleet) -> Plans:
        """What makes the plans for several endpoints."""
        from recollect.client.fleet.calling import FleetPlanner

        return FleetPlanner(
            fleet,
            retry=self.retry,
            timeout_s=self.timeout_s,
            server_clock=self.server_clock,
            clock=self.clock,
            randomness=self.randomness,
            notice=self.errors.add,
        )

    def probes(self, fleet: Fleet, new_id: Callable[[], int]) -> Probes:
        """How those that are away are probed."""
        from recollect.client.fleet.probing import Probes

        return Probes(fleet, new_id=new_id, clock=self.clock)

    def transport(self, fleet: Fleet | None, connections_max: int, endpoint: str) -> Transport:
        """The lines to one endpoint, for threads."""
        from recollect.client.transport import Transport

        return Transport(
            endpoint,
            keys=self.keys,
            connect_s=self.timeouts.connect_s,
            connections_max=connections_max,
            clock=self.clock,
            is_spared=None if fleet is None else partial(fleet.is_spared, endpoint),
        )

    def one_line(self, fleet: Fleet | None, endpoint: str) -> Requests:
        """A connection for one thread, to the endpoint or to any of the fleet's."""
        if fleet is None:
            return self.transport(None, 1, endpoint)
        from recollect.client.fleet.blocking import FleetTransport

        return FleetTransport(fleet, partial(self.transport, fleet, 1))

    def async_transport(self, fleet: Fleet | None, endpoint: str) -> AsyncTransport:
        """The line to one endpoint, for asyncio."""
        # asyncio takes long to import, and a blocking client does without it.
        from recollect.client.async_transport import AsyncTransport

        return AsyncTransport(
            endpoint,
            keys=self.keys,
            connect_s=self.timeouts.connect_s,
            in_flight_max=self.pool.in_flight_max,
            clock=self.clock,
            is_spared=None if fleet is None else partial(fleet.is_spared, endpoint),
        )
