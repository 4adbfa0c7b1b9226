"""The probe of an endpoint that is away: a ping, which asks for nothing and costs little."""

from __future__ import annotations

from collections.abc import Callable, Generator

from recollect.client import sockets
from recollect.client.breaker import counts
from recollect.client.calling import AttemptAt, Look, Outcome, read_answer
from recollect.client.encoding import NOBODY, Call, encode, frame_of
from recollect.client.fleet.calling import FleetStep
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.members import GONE, Choice
from recollect.client.fleet.names import LOOK_TIMEOUT_S
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import RecollectError, TransportError, Unauthenticated
from recollect.protocol.operations import Ping

PROBE_TIMEOUT_S = 1.0
ROUND_S_MIN = 0.01
_PING = Call(Ping.spec, encode(Ping()), None, PROBE_TIMEOUT_S)


class Probes:
    """What to send as a probe, and what an answer means. As plans do, it does no I/O itself."""

    def __init__(
        self, fleet: Fleet, *, new_id: Callable[[], int], clock: Callable[[], float]
    ) -> None:
        self._fleet = fleet
        self._new_id = new_id
        self._clock = clock

    def round(self) -> Generator[FleetStep, Outcome, None]:
        """Ask all that are due to be asked, one after another."""
        if self._fleet.names.is_due(somebody_away=True):
            yield Look(LOOK_TIMEOUT_S)
        while (choice := self._fleet.to_probe()) is not None:
            outcome: Outcome = sockets.closed()
            try:
                outcome = yield self._attempt(choice)
            finally:
                self._learn(choice, outcome)

    def _attempt(self, choice: Choice) -> AttemptAt:
        """The ping to send."""
        request_id = self._new_id()
        deadline_ms = choice.member.server_clock.deadline_ms(self._clock() + PROBE_TIMEOUT_S)
        frame = frame_of(_PING, request_id, deadline_ms, NOBODY)
        return AttemptAt(frame, request_id, PROBE_TIMEOUT_S, choice.member.endpoint)

    def _learn(self, choice: Choice, outcome: Outcome) -> None:
        """Take what came of it."""
        answer: object = outcome
        if isinstance(outcome, Reply):
            choice.member.server_clock.learn(outcome.now_ms, self._clock())
            answer = read_answer(outcome)
        error = answer if isinstance(answer, RecollectError) and _tells_against(answer) else None
        self._fleet.probed(choice, error)


def _tells_against(error: RecollectError) -> bool:
    """Whether who says so is still not to be asked; any other answer shows that it is there."""
    return counts(error) or isinstance(error, (*GONE, TransportError, Unauthenticated))
