"""The lines to several endpoints, for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeVar

from recollect.client import forking
from recollect.client.calling import Look, Outcome
from recollect.client.endpoints import Named
from recollect.client.fleet.calling import FleetStep
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.lines import Lines
from recollect.client.fleet.names import LOOK_TIMEOUT_S, look_up
from recollect.client.fleet.probing import ROUND_S_MIN, Probes
from recollect.client.fleet.staying import Staying
from recollect.client.transport import Transport
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError

R = TypeVar("R")


class FleetTransport:
    """The lines to a fleet, for any number of threads that follow plans, or for one that asks."""

    def __init__(self, fleet: Fleet, make: Callable[[str], Transport]) -> None:
        self._fleet = fleet
        self._lines = Lines(make)
        self._stay = Staying(fleet, moved=lambda endpoint: self._lines.keep({endpoint}))

    def take(self, step: FleetStep) -> Outcome:
        """Do what a plan wants done."""
        if isinstance(step, Look):
            self._look(step.timeout_s)
            return None
        try:
            frame, request_id, timeout_s, endpoint = step
            return self._lines.at(endpoint).request(frame, request_id, timeout_s)
        except RecollectError as error:
            return error

    def follow(self, steps: Generator[FleetStep, Outcome, R]) -> R:
        """Do one step after another, and return what came of them all."""
        try:
            step = next(steps)
            while True:
                step = steps.send(self.take(step))
        except StopIteration as end:
            result: R = end.value
            return result
        finally:
            steps.close()

    def request(self, frame: bytes, request_id: int, timeout_s: float) -> Reply:
        """Send a frame to the endpoint of the last time, as long as that is healthy, and return the
        reply. For one thread at a time, which tries again by itself and then gets another."""
        return self.follow(self._stay.ask(frame, request_id, timeout_s))

    def _look(self, timeout_s: float) -> None:
        """Find out where the names lead, or leave it if that takes too long."""
        names = self._fleet.names
        found: dict[Named, list[str]] = {}
        asked = names.begin()

        def look_all_up() -> None:
            for name in asked:
                found[name] = look_up(name)

        # The system's own answer cannot be waited for within a bound, but a thread can.
        looking = threading.Thread(target=look_all_up, name="recollect-names", daemon=True)
        # Without room for one the names stand for what they stood for before.
        with suppress(RuntimeError):
            looking.start()
            looking.join(min(timeout_s, LOOK_TIMEOUT_S))
        used = self._fleet.looked(names.learn(dict(found)))
        if not self._stay.settled:
            self._lines.keep(used)

    def close(self) -> None:
        """Close all lines; a request under way ends with ClientClosed. Once is enough."""
        self._lines.close()


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
                thread = threading.Thread(target=self._run, name="recollect-probing", daemon=True)
                # There may be no room for another thread: who fails next tries again.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while True:
            with self._lock:
                pause_s = self._fleet.probe_in_s()
                if pause_s is None or self._closed or self._client() is None:
                    self._thread = None
                    return
            try:
                if not self._closing.wait(max(pause_s, ROUND_S_MIN)):
                    self._transport.follow(self._probes.round())
            except BaseException:
                # Whoever fails next wakes another.
                self._thread = None
                raise

    def close(self) -> None:
        """Probe no more. Once is enough."""
        self._closed = True
        self._closing.set()
