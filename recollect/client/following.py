"""Following the change feed, without any I/O: what to ask next, and what an answer means.

A subscription goes on for as long as it is open: over restarts and outages it asks again, with the
pauses of the client's retries. It has no part in the circuit breaker, for it is meant to wait.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.client.calling import Attempt, Notice, pause_after_s, read_answer
from recollect.client.encoding import Call, Speaker, frame_of, prepare
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.protocol.envelope import Reply
from recollect.protocol.errors import ClientClosed, RecollectError, TransportError
from recollect.protocol.operations import ReadChanges

if TYPE_CHECKING:
    from recollect.protocol.records import FeedChange

WAIT_S = 15.0
"""How long one request waits at the orchestrator for the next change."""
ANSWERED_WITHIN_S = 10.0
PAGE_CHANGES = 500
ATTEMPTS_COUNTED_MAX = 20


class Follower:
    """Where a subscription stands. In the hands of one thread or task at a time."""

    def __init__(
        self,
        wanted: ReadChanges,
        *,
        bearer: str | None = None,
        retry: Retry,
        server_clock: ServerClock,
        clock: Callable[[], float],
        randomness: random.Random,
        notice: Notice,
        new_id: Callable[[], int],
    ) -> None:
        """`wanted` says what to follow, and behind which number; it is asked for by who has the
        bearer key, if one is given."""
        self._speaker = Speaker(bearer=bearer)
        self._wanted = msgspec.structs.replace(wanted, limit=PAGE_CHANGES, wait_s=WAIT_S)
        self._retry = retry
        self._server_clock = server_clock
        self._clock = clock
        self._randomness = randomness
        self._notice = notice
        self._new_id = new_id
        self._failed = 0
        self._come: deque[FeedChange] = deque()
        self._next_seq = wanted.after_seq
        self.seq = wanted.after_seq
        """The last change that was given out or passed by: where another could go on. None until
        the present end is known."""

    def take(self) -> FeedChange | None:
        """The next change, if one has come."""
        if not self._come:
            return None
        change = self._come.popleft()
        self.seq = change["seq"] if self._come else self._next_seq
        return change

    def ask(self) -> Attempt:
        """The request for what comes next; as long as the end is not known, for that."""
        wanted = self._wanted
        if self._next_seq is None:
            wanted = msgspec.structs.replace(wanted, wait_s=0.0)
        call = self._prepare(msgspec.structs.replace(wanted, after_seq=self._next_seq))
        request_id = self._new_id()
        timeout_s = wanted.wait_s + ANSWERED_WITHIN_S
        deadline_ms = self._server_clock.deadline_ms(self._clock() + timeout_s)
        return Attempt(
            frame_of(call, request_id, deadline_ms, self._speaker), request_id, timeout_s
        )

    def _prepare(self, wanted: ReadChanges) -> Call:
        return prepare(wanted, now_ms=self._server_clock.now_ms, randomness=self._randomness)

    def learn(self, outcome: Reply | RecollectError) -> float:
        """Take an answer; how long to pause before asking again. Raises what no retry can mend."""
        answer: Any = outcome
        if isinstance(outcome, Reply):
            self._server_clock.learn(outcome.now_ms, self._clock())
            answer = read_answer(outcome)
        if isinstance(answer, RecollectError):
            return self._failed_by(answer)
        self._failed = 0
        self._come.extend(answer["changes"])
        self._next_seq = answer["next_seq"]
        if not self._come:
            self.seq = self._next_seq
        return 0.0

    def _failed_by(self, error: RecollectError) -> float:
        if isinstance(error, TransportError) and not isinstance(error, ClientClosed):
            self._notice(ReadChanges.spec.name, error)
        if not error.retryable:
            raise error
        self._failed = min(ATTEMPTS_COUNTED_MAX, self._failed + 1)
        return pause_after_s(error, self._failed, self._retry, self._randomness)
