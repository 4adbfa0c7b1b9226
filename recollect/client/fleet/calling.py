"""The plan of one call where there are several endpoints: whom to ask, and whom next.

An attempt that failed because of whom it asked is made again at once elsewhere; only when all that
may be asked were, there is a pause, as with a single endpoint. A write carries its key wherever it
goes, and the orchestrators share the store that remembers it: it takes effect once. What is not
safe to send twice goes elsewhere only if it was not sent at all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Final, TypeAlias

from recollect.client.calling import (
    AttemptAt,
    Look,
    Notice,
    Outcome,
    Pause,
    Plan,
    pause_before_retry_s,
    read_answer,
    timed_out,
)
from recollect.client.encoding import NOBODY, Call, Speaker, encode, frame_of
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.members import GONE, Choice, Member
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import (
    CircuitOpen,
    DeadlineExceeded,
    Overloaded,
    RecollectError,
    StorageFailed,
    TransportError,
    Unreachable,
)

FleetStep: TypeAlias = AttemptAt | Look
"""What takes a line to do; whoever follows a plan sees to its pauses."""
# Another one may have more room, or a better line to the storage.
BETTER_ELSEWHERE = (*GONE, Overloaded, StorageFailed)
_REFUSED: Final = encode({"status": "error"})[1:]


class FleetPlanner:
    """Makes the plans for several endpoints. Any thread may use it."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        retry: Retry,
        timeout_s: float,
        server_clock: ServerClock,
        clock: Callable[[], float],
        randomness: random.Random,
        notice: Notice,
    ) -> None:
        """`server_clock` is that of whoever answered last; each endpoint has another of its own."""
        self._fleet = fleet
        self._retry = retry
        self._timeout_s = timeout_s
        self._server_clock = server_clock
        self._clock = clock
        self._randomness = randomness
        self._notice = notice
        self.new_id: Callable[[], int] = itertools.count(1).__next__
        """Ids of requests, which are unique among all of this client's."""

    def plan(self, call: Call, speaker: Speaker = NOBODY) -> Plan:
        """Carry out one call, with retries where they are safe, before its deadline."""
        clock, fleet = self._clock, self._fleet
        deadline_s = clock() + (call.timeout_s or self._timeout_s)
        error: RecollectError | None = None
        asked: list[Member] = []
        corrected: list[Member] = []
        attempts, rounds = 0, 1
        while True:
            if fleet.names.is_due():
                yield Look(deadline_s - clock())
            left_s = deadline_s - clock()
            if left_s <= 0:
                raise error or timed_out(call.spec.name)
            try:
                choice = fleet.choose(asked)
            except CircuitOpen as refusal:
                raise error or refusal from None
            member = choice.member
            try:
                request_id = self.new_id()
                deadline_ms = member.server_clock.deadline_ms(deadline_s)
                frame = frame_of(call, request_id, deadline_ms, speaker)
                outcome = yield AttemptAt(frame, request_id, left_s, member.endpoint)
            except BaseException:
                fleet.abandoned(choice)
                raise
            if isinstance(outcome, Reply):
                member.server_clock.learn(outcome.now_ms, clock())
                self._server_clock.learn(outcome.now_ms, clock())
                answer = read_answer(outcome)
                if not isinstance(answer, RecollectError):
                    fleet.answered(choice)
                    return answer
                error = answer
            else:
                assert outcome is not None, "an attempt comes to a reply or an error"
                error = outcome
            fleet.failed(choice, error)
            if isinstance(error, TransportError):
                self._notice(call.spec.name, error)
            if isinstance(error, DeadlineExceeded) and member not in corrected:
                # It expired by a clock other than we thought, and now we know that clock.
                corrected.append(member)
                continue
            asked.append(member)
            attempts += 1
            if goes_elsewhere(call, error) and fleet.has_other(asked):
                continue
            # To wait until somebody listens takes long: after one at each there is no other round.
            tried = attempts if isinstance(error, Unreachable) else rounds
            pause_s = pause_before_retry_s(call, error, tried, self._retry, self._randomness)
            if pause_s is None or clock() + pause_s >= deadline_s:
                raise error
            interruption = yield Pause(pause_s)
            if isinstance(interruption, RecollectError):
                raise interruption
            asked.clear()
            rounds += 1


def goes_elsewhere(call: Call, error: RecollectError) -> bool:
    """Whether a call that failed so is to be tried at another endpoint, without a pause."""
    if isinstance(error, Unreachable):
        return True  # It was not even sent.
    return call.spec.replay and isinstance(error, BETTER_ELSEWHERE)


def tell(fleet: Fleet, choice: Choice, outcome: Outcome) -> None:
    """Tell the fleet what came of a request that no plan was made for."""
    if isinstance(outcome, Reply):
        # Most answers are none of errors, and may be long: they are read by who asked.
        if not outcome.body[1:].startswith(_REFUSED):
            fleet.answered(choice)
            return
        answer = read_answer(outcome)
        if not isinstance(answer, RecollectError):
            fleet.answered(choice)
            return
        outcome = answer
    assert outcome is not None, "a request comes to a reply or an error"
    fleet.failed(choice, outcome)
