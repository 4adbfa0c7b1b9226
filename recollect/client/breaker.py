"""The circuit breaker: pybreaker's states, counters and listeners, guarding calls of any kind.

pybreaker runs the guarded function itself, under its lock and by the wall clock, which serialises
threads and does not see a coroutine fail. Here a call asks for a permit and later says how it went;
the lock is held only while the state changes, and the clock is monotonic and passed in.

    closed ── fail_max failures in a row ──► open ── reset_timeout_s ──► half-open
      ▲                                       ▲                             │ one probe
      └────────────── it succeeds ────────────┼─────────────────────────────┤
                                              └────────── it fails ─────────┘
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypedDict

import pybreaker

from recollect.client import forking
from recollect.client.listening import Heeded
from recollect.client.settings import Breaker
from recollect.protocol.errors import (
    CircuitOpen,
    ClientClosed,
    DeadlineExceeded,
    Overloaded,
    RecollectError,
    TransportError,
)


class CircuitStatus(TypedDict):
    """The state of one circuit and its numbers."""

    status: str
    state: str
    failures: int
    fail_max: int
    reset_timeout_s: float
    retry_in_s: float
    opened_count: int
    last_error: str | None


class EndpointStatus(TypedDict):
    """What a client thinks of one endpoint."""

    endpoint: str
    healthy: bool
    state: str
    failures: int
    retry_in_s: float
    opened_count: int
    last_error: str | None


class BreakerStatus(CircuitStatus):
    """What `get_circuit_breaker_status()` returns. Of several endpoints, each has a circuit of its
    own, and the state is that of the best."""

    endpoints: list[EndpointStatus]


def endpoint_status(
    endpoint: str, circuit: CircuitStatus, *, healthy: bool | None = None
) -> EndpointStatus:
    """What is thought of an endpoint; it is healthy while its circuit is closed, unless more is
    known of it."""
    return {
        "endpoint": endpoint,
        "healthy": circuit["state"] == pybreaker.STATE_CLOSED if healthy is None else healthy,
        "state": circuit["state"],
        "failures": circuit["failures"],
        "retry_in_s": circuit["retry_in_s"],
        "opened_count": circuit["opened_count"],
        "last_error": circuit["last_error"],
    }


def counts(error: BaseException) -> bool:
    """Whether an error says that the line is bad, and not that the request was."""
    if isinstance(error, TransportError):
        return not isinstance(error, CircuitOpen | ClientClosed)
    return isinstance(error, Overloaded | DeadlineExceeded)


class Permit:
    """Leave to make one call. Its holder says how the call went, by one of three methods."""

    __slots__ = ("_guard",)

    def __init__(self, guard: CircuitGuard) -> None:
        self._guard = guard

    @property
    def live(self) -> bool:
        """Whether the circuit is still as it was when this permit was given."""
        return self._guard._live is self

    def succeeded(self) -> None:
        """The orchestrator answered."""
        self._guard._succeeded(self)

    def failed(self, error: BaseException) -> None:
        """The line failed, if the error is one that counts."""
        if counts(error):
            self._guard._failed(self, error)
        elif isinstance(error, RecollectError) and not isinstance(error, TransportError):
            self._guard._succeeded(self)
        else:
            self.abandoned()

    def abandoned(self) -> None:
        """The call was given up before it could tell anything about the line."""
        self._guard._abandoned(self)


class CircuitGuard:
    """Admits calls while the circuit is closed, and one probe while it is half-open."""

    def __init__(
        self,
        settings: Breaker,
        *,
        clock: Callable[[], float],
        listeners: Sequence[pybreaker.CircuitBreakerListener] = (),
        on_open: Callable[[RecollectError], None] | None = None,
        name: str = "recollect",
    ) -> None:
        self._settings = settings
        self._name = name
        self._on_open = on_open
        self._clock = clock
        self._listeners = [Heeded(listener) for listener in listeners]
        self._start()
        forking.register(self)

    def _start(self) -> None:
        # Re-entrant, because listeners run under it and may ask for the status.
        self._lock = threading.RLock()
        self._counters = pybreaker.CircuitMemoryStorage(pybreaker.STATE_CLOSED)
        self._circuit = pybreaker.CircuitBreaker(
            fail_max=self._settings.fail_max,
            reset_timeout=self._settings.reset_timeout_s,
            listeners=self._listeners,
            state_storage=self._counters,
            throw_new_error_on_trip=False,
            name=self._name,
        )
        # The permit whose report counts: one that all calls share while the circuit is closed,
        # the probe's while it is half-open, none while it is open. A call that was admitted
        # before the last change of state holds another one, and so changes nothing any more.
        # Both are changed only under the lock; `_shared` is also read without it, in one step.
        self._live: Permit | None = Permit(self)
        self._shared: Permit | None = self._live
        self._retry_at_s = 0.0
        self._opened_count = 0
        # What it said, and not the error, which would hold on to all that was under way.
        self._last_error: str | None = None

    def after_fork(self) -> None:
        self._start()

    @property
    def is_closed(self) -> bool:
        """Whether any call is admitted."""
        return self._shared is not None

    @property
    def admits(self) -> bool:
        """Whether a call would be admitted just now, be it as the probe."""
        return self.is_closed or (self._live is None and self._clock() >= self._retry_at_s)

    def admit(self) -> Permit:
        """Leave to make one call; raises CircuitOpen at once where there is none."""
        permit = self._shared or self._probe()
        if self._listeners:
            for listener in self._listeners:
                listener.before_call(self._circuit, self.admit)
        return permit

    def _probe(self) -> Permit:
        with self._lock:
            if self._shared is not None:
                return self._shared
            if self._live is not None:
                raise self._refusal("another call is probing the line")
            if self._clock() < self._retry_at_s:
                raise self._refusal("recent calls failed")
            if self._circuit.current_state != pybreaker.STATE_HALF_OPEN:
                self._circuit.half_open()
            self._live = Permit(self)
            return self._live

    def _refusal(self, why: str) -> CircuitOpen:
        retry_in_s = max(0.0, self._retry_at_s - self._clock())
        return CircuitOpen(
            f"Not sent, because {why}; the next try is in {retry_in_s:.1f} s. "
            f"The last error was: {self._last_error}",
            retry_after_ms=int(retry_in_s * 1000),
        )

    def _succeeded(self, permit: Permit) -> None:
        if self._shared is permit and not self._counters.counter and not self._listeners:
            return
        with self._lock:
            if self._live is not permit:
                return
            self._counters.reset_counter()
            if self._shared is None:
                self._close()
        for listener in self._listeners:
            listener.success(self._circuit)

    def _failed(self, permit: Permit, error: BaseException) -> None:
        opened = False
        with self._lock:
            if self._live is not permit:
                return
            self._last_error = str(error)
            self._counters.increment_counter()
            if self._shared is None or self._counters.counter >= self._settings.fail_max:
                self._live = self._shared = None
                self._opened_count += 1
                self._retry_at_s = self._clock() + self._settings.reset_timeout_s
                self._circuit.open()
                opened = True
        if opened and self._on_open is not None:
            self._on_open(CircuitOpen(f"The circuit breaker opened. The last error was: {error}"))
        for listener in self._listeners:
            listener.failure(self._circuit, error)

    def _abandoned(self, permit: Permit) -> None:
        with self._lock:
            if self._live is permit and self._shared is None:
                self._live = None

    def _close(self) -> None:
        self._live = self._shared = Permit(self)
        self._circuit.close()

    def reset(self) -> None:
        """Close the circuit, whatever its state."""
        with self._lock:
            self._last_error = None
            self._close()

    def status(self) -> CircuitStatus:
        """The state and its numbers."""
        with self._lock:
            opened = self._circuit.current_state == pybreaker.STATE_OPEN
            left_s = self._retry_at_s - self._clock() if opened else 0.0
            return {
                "status": "success",
                "state": self._circuit.current_state,
                "failures": self._circuit.fail_counter,
                "fail_max": self._settings.fail_max,
                "reset_timeout_s": self._settings.reset_timeout_s,
                "retry_in_s": max(0.0, left_s),
                "opened_count": self._opened_count,
                "last_error": self._last_error,
            }
