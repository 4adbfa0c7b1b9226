"""The lines to several endpoints, for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from recollect.client import forking, sockets
from recollect.client.calling import AttemptAt, Look, Outcome
from recollect.client.endpoints import Named
from recollect.client.fleet.calling import tell
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.members import Member
from recollect.client.fleet.names import LOOK_TIMEOUT_S, look_up
from recollect.client.fleet.probing import ROUND_S_MIN, Probes
from recollect.client.transport import Transport
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError


class FleetTransport:
    """A transport for each endpoint, made when it is first needed."""

    def __init__(self, fleet: Fleet, make: Callable[[str], Transport]) -> None:
        self._fleet = fleet
        self._make = make
        # Any thread adds to it, in one step; what is dropped was told by the fleet to be unused.
        self._by_endpoint: dict[str, Transport] = {}
        self._closed = False
        self._stay: Member | None = None

    def take(self, step: AttemptAt | Look) -> Outcome:
        """Do what a plan wants done."""
        if isinstance(step, Look):
            self.look(step.timeout_s)
            return None
        try:
            frame, request_id, timeout_s, endpoint = step
            return self._at(endpoint).request(frame, request_id, timeout_s)
        except RecollectError as error:
            return error

    def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame to the endpoint of the last time, as long as that is healthy, and return the
        reply. For one thread at a time, which tries again by itself and then gets another."""
        if self._fleet.names.is_due():
            self.look(timeout_s)
        choice = self._fleet.choose(stay=self._stay, waits=True)
        if choice.member is not self._stay:
            self._stay = choice.member
            self._keep({choice.member.endpoint})
        outcome: Outcome = None
        try:
            outcome = self._at(choice.member.endpoint).request(frame, request_id, timeout_s)
            return outcome
        except RecollectError as error:
            outcome = error
            raise
        finally:
            if outcome is None:
                self._fleet.abandoned(choice)
            else:
                tell(self._fleet, choice, outcome)

    def look(self, timeout_s: float) -> None:
        """Find out where the names lead, or leave it if that takes too long."""
        names = self._fleet.names
        found: dict[Named, list[str]] = {}
        asked = names.begin()

        def look_all_up() -> None:
            for name in asked:
                found[name] = look_up(name)

        # The system's own answer cannot be waited for within a bound, but a thread can.
        looking = threading.Thread(target=look_all_up, name="recollect-names", daemon=True)
        looking.start()
        looking.join(min(timeout_s, LOOK_TIMEOUT_S))
        used = self._fleet.looked(names.learn(dict(found)))
        if self._stay is None:
            self._keep(used)

    def _at(self, endpoint: str) -> Transport:
        found = self._by_endpoint.get(endpoint)
        if found is None:
            # It opens nothing before it is used, so that one made in vain costs nothing.
            found = self._by_endpoint.setdefault(endpoint, self._make(endpoint))
        if self._closed:
            found.close()
        return found

    def _keep(self, endpoints: Collection[str]) -> None:
        for endpoint in [*self._by_endpoint]:
            if endpoint not in endpoints:
                unused = self._by_endpoint.pop(endpoint, None)
                if unused is not None:
                    unused.close()

    def close(self) -> None:
        """Close all lines; a request under way ends with ClientClosed. Once is enough."""
        self._closed = True
        for transport in [*self._by_endpoint.values()]:
            transport.close()


class ProbingThread:
    """Asks those that are away whether they are back; it runs only while there are such."""

    def __init__(
        self,
        fleet: Fleet,
        transport: FleetTransport,
        probes: Probes,
        client: Callable[[], object | None],
    ) -> None:
        """`client` is a weak reference: who forgot to close a client needs no probes for it."""
        self._fleet = fleet
        self._transport = transport
        self._probes = probes
        self._client = client
        self._closed = False
        self._start()
        fleet.on_away = self.wake
        forking.register(self)

    def _start(self) -> None:
        # Guards the thread's existence: who marks one as away wakes afterwards, under this lock.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def after_fork(self) -> None:
        self._start()

    def wake(self) -> None:
        """Begin to probe, unless that is under way."""
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="recollect-probing", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                pause_s = self._fleet.probe_in_s()
                if pause_s is None or self._closed or self._client() is None:
                    self._thread = None
                    return
            try:
                if not self._closing.wait(max(pause_s, ROUND_S_MIN)):
                    self._round()
            except BaseException:
                # Whoever fails next wakes another.
                self._thread = None
                raise

    def _round(self) -> None:
        if self._fleet.names.is_due(somebody_away=True):
            self._transport.look(LOOK_TIMEOUT_S)
        while (choice := self._fleet.to_probe()) is not None:
            outcome: Outcome = sockets.closed()
            try:
                outcome = self._transport.take(self._probes.attempt(choice))
            finally:
                self._probes.learn(choice, outcome)

    def close(self) -> None:
        """Probe no more. Once is enough."""
        self._closed = True
        self._closing.set()
