"""The half of a client that does no I/O: its settings, breaker and plans."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.client.bounds import check_seconds, check_settings
from recollect.client.calling import Plan, Planner, Plans
from recollect.client.encoding import Call, Speaker, prepare
from recollect.client.endpoints import SEPARATOR, endpoints_from, named
from recollect.client.keys import keys_from
from recollect.client.making import Making
from recollect.client.methods import Operations
from recollect.client.reporting import ErrorBuffer
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Breaker, Pool, Retry, Timeouts, bearer_or_default
from recollect.client.speaking import Speaking
from recollect.protocol.errors import RecollectError, TransportError, Unsupported
from recollect.protocol.operation import Operation
from recollect.protocol.operations.sessions import holds_temporary

if TYPE_CHECKING:
    import os

    import pybreaker

    from recollect.client.breaker import BreakerStatus, CircuitGuard
    from recollect.client.delivery import Outbox
    from recollect.client.fleet.choosing import Fleet
    from recollect.client.following import Follower
    from recollect.protocol.operations import ReadChanges


class SansIoClient(Speaking, Operations):
    """What both clients share. Use `MemoryClient` or `AsyncMemoryClient`."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        endpoints: Sequence[str] | None = None,
        spread: bool = True,
        key_file: str | os.PathLike[str] | None = None,
        bearer: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
        timeout: float | None = None,
        raise_errors: bool = True,
        timeouts: Timeouts | None = None,
        retry: Retry | None = None,
        breaker: Breaker | None = None,
        pool: Pool | None = None,
        outbox: str | os.PathLike[str] | None = None,
        listeners: Sequence[pybreaker.CircuitBreakerListener] = (),
    ) -> None:
        """Make a client; it connects when it is first used.

        endpoint: the orchestrator; else RECOLLECT_ENDPOINT, else the one in the key file, else
            tcp://127.0.0.1:7331. With commas it is several, as is a name with several addresses.
        endpoints: several orchestrators on one database, instead of `endpoint`: calls are spread
            over those that answer.
        spread: ask all of several by turns, or one as long as it answers.
        key_file: path of the file that lets it in; else RECOLLECT_KEY_FILE, else without a key.
        bearer: a bearer key, in whose name all is done; else RECOLLECT_BEARER, else the client
            is whoever its key file or its machine is.
        agent_id, session_id: who writes, and the session that new memories belong to.
        task_id: the task that the work is done for; the audit keeps it with every change.
        timeout: seconds for a call with its retries, instead of `timeouts.call_s` (10).
        raise_errors: raise a RecollectError on failure, or return its dict. What is no single
            call raises either way: `subscribe`, `flush_outbox` and `outbox_status`.
        outbox: path of a file that keeps writes while the orchestrator is away.
        listeners: told of the circuit breaker's changes; they must be quick. What one raises is
            logged under `recollect.client` and changes nothing else.
        """
        self._keys = keys_from(key_file)
        self.endpoints = endpoints_from(endpoint, endpoints, self._keys)
        """Where the orchestrators are, as it was told."""
        self.endpoint = SEPARATOR.join(self.endpoints)
        """The same as one text."""
        self.raise_errors = raise_errors
        self._timeouts = Timeouts() if timeouts is None else timeouts
        self._retry = Retry() if retry is None else retry
        breaker = Breaker() if breaker is None else breaker
        pool = Pool() if pool is None else pool
        check_settings(self._timeouts, self._retry, breaker, pool)
        timeout_s = self._timeouts.call_s if timeout is None else timeout
        check_seconds("timeout", timeout_s)
        self._speak_as(agent_id, session_id, task_id, bearer_or_default(bearer))
        self._clock = time.monotonic
        self._randomness = random.SystemRandom()
        self._server_clock = ServerClock(self._clock, time.time)
        self._errors = ErrorBuffer(self.endpoint, self._clock)
        self._making = Making(
            self._keys,
            self._timeouts,
            timeout_s,
            self._retry,
            breaker,
            pool,
            tuple(listeners),
            self._clock,
            self._randomness,
            self._server_clock,
            self._errors,
        )
        # One address has a breaker, several have a fleet in which each has its own.
        self._fleet: Fleet | None = None
        self._guard: CircuitGuard | None = None
        self._single: Planner | None = None
        self._planner: Plans
        if len(self.endpoints) > 1 or named(self.endpoint) is not None:
            self._fleet = self._making.fleet(self.endpoints, spread=spread)
            self._planner = self._making.fleet_planner(self._fleet)
        else:
            self._guard = self._making.guard()
            self._planner = self._single = self._making.planner(self._guard)
        self._outbox = self._make_outbox(outbox) if outbox is not None else None
        self._open()

    def _open(self) -> None:
        """Make what does the I/O; overridden by each client."""
        raise NotImplementedError

    def _make_outbox(self, path: str | os.PathLike[str]) -> Outbox:
        from recollect.client.delivery import Outbox
        from recollect.client.outbox import OutboxFile

        outbox = Outbox(
            OutboxFile(path, wall=time.time),
            bearer=self._speaker.bearer,
            make_transport=partial(self._making.one_line, self._fleet, self.endpoint),
            retry=self._retry,
            server_clock=self._server_clock,
            clock=self._clock,
            randomness=self._randomness,
            notice=self._errors.add,
        )
        # A process before this one may have left something behind.
        outbox.wake()
        return outbox

    @property
    def has_key(self) -> bool:
        """Whether it comes in with a key."""
        return self._keys is not None

    @property
    def has_outbox(self) -> bool:
        """Whether writes may be answered with `queued`."""
        return self._outbox is not None

    def get_circuit_breaker_status(self) -> BreakerStatus:
        """The state of the circuit breaker, its numbers, and what is thought of each endpoint."""
        from recollect.client.breaker import endpoint_status

        if self._fleet is not None:
            return self._fleet.status()
        assert self._guard is not None, "there is one endpoint, or a fleet"
        status = self._guard.status()
        return {**status, "endpoints": [endpoint_status(self.endpoint, status)]}

    def reset_circuit_breaker(self) -> BreakerStatus:
        """Close the circuit, so that the next call is tried whatever happened before."""
        if self._fleet is not None:
            self._fleet.reset()
        if self._guard is not None:
            self._guard.reset()
        return self.get_circuit_breaker_status()

    def _prepare(self, operation: Operation[Any]) -> Call:
        return prepare(operation, now_ms=self._server_clock.now_ms, randomness=self._randomness)

    def _follower(self, wanted: ReadChanges) -> Follower:
        from recollect.client.following import Follower

        return Follower(
            wanted,
            bearer=self._speaker.bearer,
            retry=self._retry,
            server_clock=self._server_clock,
            clock=self._clock,
            randomness=self._randomness,
            notice=self._errors.add,
            new_id=self._planner.new_id,
        )

    def _may_wait(self, operation: Operation[Any], call: Call, speaker: Speaker) -> bool:
        """Whether an operation can go through the outbox: a write that is safe to send again, that
        may be written down, that is not done under a lease, which is of the moment, and not by
        another's bearer key, which is not written down: the outbox delivers by the client's."""
        return (
            call.spec.access == "write"
            and call.spec.replay
            and speaker.fence is None
            and speaker.bearer == self._speaker.bearer
            and not holds_temporary(operation)
        )

    def _plan(self, call: Call) -> Plan:
        return self._planner.plan(call, self._speaker)


def must_wait(error: RecollectError) -> bool:
    """Whether a write that failed so goes to the outbox: its key makes a second delivery safe."""
    return isinstance(error, TransportError) and error.retryable


def no_outbox() -> Unsupported:
    return Unsupported("This client has no outbox: give it one with outbox=<path of a file>.")
