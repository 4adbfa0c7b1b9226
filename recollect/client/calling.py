"""The plan of one call: when to send, when to pause, when to give up. It does no I/O itself.

A plan is a generator. It yields what to do next, such as an `Attempt` or a `Pause`, and is sent
what came of it; it returns the answer or raises. Both clients follow the same plans, each in its
own way of waiting, and a test follows them with a clock of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec

from recollect.client.encoding import NOBODY, Call, Speaker, decode, frame_of
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import (
    ConnectionLost,
    DeadlineExceeded,
    RecollectError,
    RequestTimeout,
    TransportError,
    Unreachable,
    from_body,
)

if TYPE_CHECKING:
    from recollect.client.breaker import CircuitGuard, Permit

UNREACHABLE_ATTEMPTS_MAX = 2
# Whoever asks for more is asked again after this.
ASKED_PAUSE_S_MAX = 3600.0


class Attempt(NamedTuple):
    """Send this frame and wait for the reply with this id, no longer than the time left."""

    frame: bytes
    request_id: int
    timeout_s: float


class Begun(msgspec.Struct, frozen=True):
    """A call whose first attempt is made: what that needs, and what goes on beyond it."""

    frame: bytes
    request_id: int
    timeout_s: float
    deadline_s: float
    permit: Permit


class AttemptAt(NamedTuple):
    """The same, at this one of several endpoints."""

    frame: bytes
    request_id: int
    timeout_s: float
    endpoint: str


class Look(NamedTuple):
    """Find out which addresses the names of the endpoints have by now."""

    timeout_s: float


class Pause(NamedTuple):
    """Wait before the next attempt."""

    seconds: float


Step: TypeAlias = Attempt | Pause | AttemptAt | Look
Outcome: TypeAlias = Reply | RecollectError | None
Plan: TypeAlias = Generator[Step, Outcome, dict[str, Any]]
Notice: TypeAlias = Callable[[str, RecollectError], None]


class Plans(Protocol):
    """Makes the plans of one client, which has one endpoint or several."""

    new_id: Callable[[], int]

    def plan(self, call: Call, speaker: Speaker = NOBODY) -> Plan:
        """Carry out one call, with retries where they are safe, before its deadline."""
        ...


class Planner:
    """Makes plans for one endpoint. Any thread may use it: calls share only the server's clock."""

    def __init__(
        self,
        *,
        guard: CircuitGuard,
        retry: Retry,
        timeout_s: float,
        server_clock: ServerClock,
        clock: Callable[[], float],
        randomness: random.Random,
        notice: Notice,
    ) -> None:
        self._guard = guard
        self._retry = retry
        self._timeout_s = timeout_s
        self._server_clock = server_clock
        self._clock = clock
        self._randomness = randomness
        self._notice = notice
        self.new_id: Callable[[], int] = itertools.count(1).__next__
        """Ids of requests, which are unique among all of this client's."""

    def begin(self, call: Call, speaker: Speaker = NOBODY) -> Begun:
        """The first attempt of a call: for most there is no other, and no plan need be made."""
        timeout_s = call.timeout_s or self._timeout_s
        deadline_s = self._clock() + timeout_s
        permit = self._guard.admit()
        try:
            request_id = self.new_id()
            deadline_ms = self._server_clock.deadline_ms(deadline_s)
            frame = frame_of(call, request_id, deadline_ms, speaker)
        except BaseException:
            permit.abandoned()
            raise
        return Begun(frame, request_id, timeout_s, deadline_s, permit)

    def answer_of(self, outcome: Outcome, permit: Permit) -> dict[str, Any] | RecollectError:
        """The answer that an attempt came to, or why there is none."""
        if not isinstance(outcome, Reply):
            assert outcome is not None, "an attempt comes to a reply or an error"
            return outcome
        self._server_clock.learn(outcome.now_ms, self._clock())
        answer = read_answer(outcome)
        if type(answer) is dict:
            permit.succeeded()
        return answer

    def plan(self, call: Call, speaker: Speaker = NOBODY) -> Plan:
        """Carry out one call, with retries where they are safe, before its deadline."""
        begun = self.begin(call, speaker)
        try:
            outcome = yield Attempt(begun.frame, begun.request_id, begun.timeout_s)
        except BaseException:
            begun.permit.abandoned()
            raise
        answer = self.answer_of(outcome, begun.permit)
        if isinstance(answer, RecollectError):
            answer = yield from self.going_on(call, speaker, begun, answer)
        return answer

    def going_on(self, call: Call, speaker: Speaker, begun: Begun, error: RecollectError) -> Plan:
        """Carry out what is left of a call whose first attempt failed."""
        clock, permit, deadline_s = self._clock, begun.permit, begun.deadline_s
        attempt = 1
        clock_corrected = False
        try:
            while True:
                if isinstance(error, TransportError):
                    self._notice(call.spec.name, error)
                # It expired by a clock other than we thought, and now we know that clock.
                at_once = isinstance(error, DeadlineExceeded) and not clock_corrected
                if at_once and clock() < deadline_s:
                    clock_corrected = True
                else:
                    pause_s = pause_before_retry_s(
                        call, error, attempt, self._retry, self._randomness
                    )
                    if pause_s is None or clock() + pause_s >= deadline_s:
                        raise error
                    interruption = yield Pause(pause_s)
                    if isinstance(interruption, RecollectError):
                        raise interruption
                    if not permit.live:
                        raise error
                    attempt += 1
                left_s = deadline_s - clock()
                if left_s <= 0:
                    raise timed_out(call.spec.name)
                request_id = self.new_id()
                deadline_ms = self._server_clock.deadline_ms(deadline_s)
                outcome = yield Attempt(
                    frame_of(call, request_id, deadline_ms, speaker), request_id, left_s
                )
                answer = self.answer_of(outcome, permit)
                if not isinstance(answer, RecollectError):
                    return answer
                error = answer
        except RecollectError as failure:
            permit.failed(failure)
            raise
        except BaseException:
            permit.abandoned()
            raise


def pause_before_retry_s(
    call: Call, error: RecollectError, attempt: int, retry: Retry, randomness: random.Random
) -> float | None:
    """How long to wait before the next attempt; None if there is to be none."""
    if not (call.spec.replay and error.retryable):
        return None
    attempts_max = retry.attempts_max
    if isinstance(error, Unreachable):
        attempts_max = min(attempts_max, UNREACHABLE_ATTEMPTS_MAX)
    if attempt >= attempts_max:
        return None
    return pause_after_s(error, attempt, retry, randomness)


def pause_after_s(
    error: RecollectError, attempt: int, retry: Retry, randomness: random.Random
) -> float:
    """The pause after an error, when there is to be another attempt: no shorter than was asked."""
    pause_s = backoff_s(retry, attempt, randomness)
    asked_ms = error.details.get("retry_after_ms")
    if isinstance(asked_ms, int | float):
        pause_s = max(pause_s, min(float(asked_ms) / 1000, ASKED_PAUSE_S_MAX))
    return pause_s


def backoff_s(retry: Retry, attempt: int, randomness: random.Random) -> float:
    """The pause after this many attempts: doubled each time, with jitter between half and all."""
    whole_ms = min(retry.backoff_ms_max, retry.backoff_ms * 2 ** min(attempt - 1, 30))
    return float(whole_ms * (0.5 + randomness.random() / 2)) / 1000


def read_answer(reply: Reply) -> dict[str, Any] | RecollectError:
    """The answer in a reply, or the error that it reports."""
    try:
        answer: dict[str, Any] = decode(reply.body)
        if answer["status"] != "error":
            return answer
        return from_body(answer["error"])
    except (msgspec.MsgspecError, UnicodeError, TypeError, KeyError) as error:
        return ConnectionLost(f"The answer is not one of the Recollect protocol: {error!r}.")


def timed_out(name: str) -> RequestTimeout:
    """The error of a call whose time is spent."""
    return RequestTimeout(f"No answer to {name} in time. Whether it took effect is not known.")
