"""Who is let in: known operations, in time, within bounds, by those who may.

Everything that is asked of a request before it is looked into, and how many are under way.
"""

from __future__ import annotations

from typing import Any

from recollect.config.settings import NetworkSettings
from recollect.orchestrator.access.identities import Identity
from recollect.orchestrator.access.rates import Rates
from recollect.orchestrator.calls import Call, expired
from recollect.orchestrator.feed.waiting import WaitingRoom
from recollect.orchestrator.jobs.fencing import read_fence
from recollect.orchestrator.serving.requests import NAME_LIMITS, check_names
from recollect.orchestrator.serving.routes import Route, Routes
from recollect.orchestrator.trust.secret_policy import SecretPolicy
from recollect.orchestrator.validation import Validator
from recollect.protocol.envelope import Request
from recollect.protocol.errors import Overloaded, ShuttingDown, UnknownOperation
from recollect.protocol.operation import Operation
from recollect.protocol.operations import REGISTRY


class Admission:
    """Lets requests in, and knows how many are in. Lives on the event loop."""

    def __init__(
        self,
        routes: Routes,
        network: NetworkSettings,
        room: WaitingRoom,
        rates: Rates,
        validator: Validator,
        secrets: SecretPolicy | None,
    ) -> None:
        self._routes = routes
        self._network = network
        self._in_flight_max = network.in_flight_max
        self._room = room
        self._rates = rates
        self._validator = validator
        self._secrets = secrets
        self.under_way = 0
        """Requests that are not answered yet; counted by whoever answers them."""
        self.draining = False
        """Whether nobody is let in any more."""

    @property
    def in_flight(self) -> int:
        """Requests in work; those that only wait for a change are no work."""
        return self.under_way - self._room.count

    def admit(self, request: Request, now_us: int, identity: Identity) -> tuple[Call, Route]:
        """What is known of a request that is let in; else the reason why not is raised."""
        try:
            route = self._routes[request.op]
        except KeyError:
            raise UnknownOperation(
                f"There is no operation {request.op[:64]!r}.", known=sorted(REGISTRY)
            ) from None
        if self.draining:
            raise ShuttingDown("The orchestrator is shutting down; try again shortly.")
        deadline_us = now_us + self._network.deadline_ms_default * 1000
        if request.deadline_ms is not None:
            deadline_us = request.deadline_ms * 1000
            if deadline_us <= now_us:
                raise expired()
        # Those that only wait are among the first number, so it is never the smaller.
        if self.under_way >= self._in_flight_max and self.in_flight >= self._in_flight_max:
            raise Overloaded(
                f"{self.in_flight} requests are in flight already; try again shortly.",
                limit="network.in_flight_max",
                retry_after_ms=self._network.retry_after_ms,
            )
        if identity.requests_per_s is not None:
            self._rates.take(identity)
        fence = None
        if request.agent or request.session or request.trace or request.key or request.task:
            check_names(request)
            if self._secrets is not None:
                for name in NAME_LIMITS:
                    self._secrets.name(name, getattr(request, name) or "")
        if request.fence is not None:
            check_names(request)
            fence = read_fence(request.fence)
        return Call(
            operation=request.op,
            now_us=now_us,
            deadline_us=deadline_us,
            identity=identity.name,
            agent=request.agent,
            session=request.session,
            trace=request.trace,
            key=request.key,
            task=request.task,
            fence=fence,
            access=route.access,
            grants=identity.grants,
            memories_max=identity.memories_max,
            credential=identity.credential,
        ), route

    def check_access(self, call: Call, route: Route, operation: Operation[Any]) -> None:
        """Refuse what the declaration alone says is not allowed.

        What an operation is about may only be known when it is looked up: the rest is checked where
        rows are found and written, by the same call.
        """
        if route.everywhere:
            call.require(None, access=route.spec.access)
        elif route.has_namespace and (namespace := operation.namespace) is not None:  # type: ignore[attr-defined]
            # Only what can be a namespace comes into the audit, and only as long as one can be.
            call.require(self._validator.namespace(namespace))
