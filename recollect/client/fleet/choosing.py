"""Whom to ask: the healthy one with the least to do, and the others only where there is none.

An orchestrator that cannot be reached, that broke off, that is shutting down or whose circuit is
open is away: it is asked by no call as long as another is not. A probe asks it from time to time,
and with the first answer it is back. All of this is arithmetic; who sends and waits is elsewhere.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from recollect.client import forking
from recollect.client.breaker import BreakerStatus, CircuitGuard
from recollect.client.calling import backoff_s
from recollect.client.fleet.members import GONE, Choice, Member
from recollect.client.fleet.names import Names
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Retry
from recollect.protocol.errors import CircuitOpen, RecollectError

PROBING = Retry(backoff_ms=100, backoff_ms_max=2_000)
"""The pauses between two probes of one that is away."""


class Fleet:
    """The orchestrators of one client. Any thread may use it; its lock is held for moments."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        make_guard: Callable[[str], CircuitGuard],
        make_server_clock: Callable[[], ServerClock],
        spread: bool = True,
        clock: Callable[[], float],
        randomness: random.Random,
    ) -> None:
        """`spread`: whether all are asked by turns, or one as long as it is healthy."""
        self._make_guard = make_guard
        self._spread = spread
        # Who was asked last, where that one is to be asked again.
        self._kept: Member | None = None
        self._make_server_clock = make_server_clock
        self._clock = clock
        self._randomness = randomness
        self.names = Names(endpoints, clock=clock, randomness=randomness)
        self.on_away: Callable[[], None] = lambda: None
        """Called when one went away, by whoever noticed it: somebody should begin to probe."""
        self._lock = threading.Lock()
        # Exchanged as a whole under the lock, so that it may be read without it.
        self._members: tuple[Member, ...] = ()
        # Those that no name stands for any more, but where something may be under way.
        self._leaving: tuple[Member, ...] = ()
        self._take_in(self.names.known())
        # Many clients that start at once do not all begin with the same one.
        self._turn = randomness.randrange(len(self._members))
        forking.register(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._leaving = ()
        for member in self._members:
            member.load = member.waits = 0
            member.forget()

    def choose(
        self, avoiding: Collection[Member] = (), *, stay: Member | None = None, waits: bool = False
    ) -> Choice:
        """Whom to ask; raises CircuitOpen where nobody may be asked.

        stay: whom it was so far, to be asked again as long as it is healthy. waits: that this is no
            load and has no part in the circuit breaker.
        """
        with self._lock:
            if not avoiding:
                self._turn += 1
            found = self._candidates(avoiding)
            stay = stay or self._kept
            if stay in found and not stay.away:
                found.insert(0, stay)
            if waits and found:
                found[0].waits += 1
                return Choice(found[0], found[0].changes, None)
        refusal = CircuitOpen("Not sent, because every orchestrator was just asked.")
        for member in found:
            try:
                choice = self._admitted(member)
            except CircuitOpen as error:
                refusal = error
                continue
            if not self._spread:
                self._kept = member
            return choice
        raise refusal

    def _admitted(self, member: Member) -> Choice:
        permit = member.guard.admit()
        with self._lock:
            member.load += 1
            return Choice(member, member.changes, permit)

    def has_other(self, than: Collection[Member]) -> bool:
        """Whether there is another to be asked at once."""
        with self._lock:
            return any(member.guard.admits for member in self._candidates(than))

    def is_spared(self, endpoint: str) -> bool:
        """Whether there is a healthy one but this, so that nobody need wait for it."""
        return any(not m.away and m.endpoint != endpoint for m in self._members)

    def _candidates(self, avoiding: Collection[Member]) -> list[Member]:
        """The healthy ones, those with the least to do first and equals by turns; where there is
        none, all, that which failed longest ago first. Call it under the lock."""
        count = len(self._members)
        turned = [self._members[(self._turn + n) % count] for n in range(count)]
        healthy = [member for member in turned if not member.away]
        if healthy:
            healthy.sort(key=_load)
        else:
            turned.sort(key=_failed_at_s)
        return [member for member in healthy or turned if member not in avoiding]

    def answered(self, choice: Choice) -> None:
        """It answered what it was asked."""
        member = choice.member
        with self._lock:
            self._end(choice)
            if member.away and member.changes == choice.changes:
                self._set_away(member, None)
        if choice.permit is not None:
            choice.permit.succeeded()

    def failed(self, choice: Choice, error: RecollectError) -> None:
        """It did not answer, or with an error."""
        member = choice.member
        with self._lock:
            self._end(choice)
            news = member.changes == choice.changes
            gone = isinstance(error, GONE)
            if news and gone:
                member.failed_at_s = self._clock()
                if member.away:
                    member.why = str(error)
                else:
                    self._set_away(member, str(error))
        if choice.permit is not None:
            if news or not gone:
                choice.permit.failed(error)
            else:
                # One outage is one failure, however many calls were under way.
                choice.permit.abandoned()
            if not member.guard.is_closed:
                self._leave_alone(member, error)
        if member.away:
            self.on_away()

    def abandoned(self, choice: Choice) -> None:
        """It was given up before it could tell anything."""
        with self._lock:
            self._end(choice)
        if choice.permit is not None:
            choice.permit.abandoned()

    def _end(self, choice: Choice) -> None:
        if choice.permit is None:
            choice.member.waits -= 1
        else:
            choice.member.load -= 1

    def _leave_alone(self, member: Member, error: RecollectError) -> None:
        with self._lock:
            if not member.away:
                self._set_away(member, str(error))

    def _set_away(self, member: Member, why: str | None) -> None:
        """Change what is thought of one. Call it under the lock."""
        member.away = why is not None
        member.why = why
        member.changes += 1
        member.probes = 0
        member.failed_at_s = self._clock()
        member.probe_at_s = member.failed_at_s + backoff_s(PROBING, 1, self._randomness)

    def to_probe(self) -> Choice | None:
        """One whose next probe is due, if there is one."""
        for member in self._members:
            with self._lock:
                now_s = self._clock()
                if not member.away or member.probe_at_s > now_s:
                    continue
                member.probes += 1
                pause_s = backoff_s(PROBING, member.probes + 1, self._randomness)
                member.probe_at_s = now_s + pause_s
            # Else the time of its breaker is not over yet, or a call is its probe.
            with suppress(CircuitOpen):
                return self._admitted(member)
        return None

    def probed(self, choice: Choice, error: RecollectError | None) -> None:
        """What came of a probe. One that failed counts for the breaker only where it is open."""
        if error is None:
            self.answered(choice)
        elif choice.member.guard.is_closed:
            self.abandoned(choice)
        else:
            self.failed(choice, error)

    def probe_in_s(self) -> float | None:
        """How long until the next probe is due; None if nobody is away."""
        with self._lock:
            due = [member.probe_at_s for member in self._members if member.away]
        return max(0.0, min(due) - self._clock()) if due else None

    def looked(self, endpoints: Iterable[str]) -> set[str]:
        """Take in what the names stand for now; the endpoints whose connections are still used."""
        with self._lock:
            self._take_in(endpoints)
            self._leaving = tuple(m for m in self._leaving if m.load or m.waits)
            return {member.endpoint for member in (*self._members, *self._leaving)}

    def _take_in(self, endpoints: Iterable[str]) -> None:
        known = {member.endpoint: member for member in (*self._members, *self._leaving)}
        former = self._members
        self._members = tuple(
            known.get(endpoint)
            or Member(endpoint, self._make_guard(endpoint), self._make_server_clock())
            for endpoint in endpoints
        )
        gone = [member for member in former if member not in self._members]
        kept = [member for member in self._leaving if member not in self._members]
        self._leaving = (*kept, *gone)

    def reset(self) -> None:
        """Think well of all of them, whatever happened."""
        for member in self._members:
            member.guard.reset()
            with self._lock:
                if member.away:
                    self._set_away(member, None)

    def status(self) -> BreakerStatus:
        """The state of all together, which is that of the best, and of each."""
        circuits = [member.guard.status() for member in self._members]
        best = min(circuits, key=lambda circuit: (_RANK[circuit["state"]], circuit["retry_in_s"]))
        errors = [found["last_error"] for found in circuits if found["last_error"] is not None]
        return {
            **best,
            "opened_count": sum(found["opened_count"] for found in circuits),
            "last_error": errors[0] if errors else None,
            "endpoints": [member.status() for member in self._members],
        }


_RANK = {"closed": 0, "half-open": 1, "open": 2}


def _load(member: Member) -> int:
    return member.load


def _failed_at_s(member: Member) -> float:
    return member.failed_at_s
