"""Requests that no plan is made for, to one endpoint as long as that is healthy.

Whoever sends them has a connection for itself, and tries again by itself: a feed, an outbox. As in
a plan, what to do is yielded, and what came of it is sent back; no I/O is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from recollect.client.calling import AttemptAt, Look, Outcome
from recollect.client.fleet.calling import FleetStep, tell
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.members import Member
from recollect.protocol.envelope import Reply

Asking: TypeAlias = Generator[FleetStep, Outcome, Reply]


class Staying:
    """Stays with an endpoint. For one thread or task at a time."""

    def __init__(self, fleet: Fleet, moved: Callable[[str], None] | None = None) -> None:
        """`moved` is told of each endpoint before it is asked for the first time in a row."""
        self._fleet = fleet
        self._moved = moved
        self._member: Member | None = None

    @property
    def settled(self) -> bool:
        """Whether anybody was asked yet."""
        return self._member is not None

    def ask(self, frame: bytes, request_id: int, timeout_s: float) -> Asking:
        """Send a frame and return the reply with this id."""
        if self._fleet.names.is_due():
            yield Look(timeout_s)
        choice = self._fleet.choose(stay=self._member, waits=True)
        endpoint = choice.member.endpoint
        if choice.member is not self._member:
            self._member = choice.member
            if self._moved is not None:
                self._moved(endpoint)
        try:
            outcome = yield AttemptAt(frame, request_id, timeout_s, endpoint)
        except BaseException:
            self._fleet.abandoned(choice)
            raise
        tell(self._fleet, choice, outcome)
        if isinstance(outcome, Reply):
            return outcome
        assert outcome is not None, "an attempt comes to a reply or an error"
        raise outcome
