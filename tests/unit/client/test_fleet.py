"""Several endpoints, with a clock of our own: whom a call asks, and whom next."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from recollect.client.breaker import CircuitGuard
from recollect.client.calling import AttemptAt, Outcome, Pause, Plan
from recollect.client.encoding import Call, prepare
from recollect.client.fleet.calling import FleetPlanner
from recollect.client.fleet.choosing import Fleet
from recollect.client.fleet.probing import Probes
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Breaker, Retry
from recollect.protocol import errors
from recollect.protocol.envelope import Reply, Request, decode_request
from recollect.protocol.operation import Operation
from recollect.protocol.operations import AddMemory, GetMemory

A, B, C = (f"tcp://10.0.0.{n}:7331" for n in (1, 2, 3))
WALL_S = 1_700_000_000.0
OK: dict[str, Any] = {"status": "success", "memory_id": "m"}


class World:
    """A planner for three endpoints. A script says what comes of an attempt at each."""

    def __init__(self, *, fail_max: int = 5, spread: bool = True) -> None:
        self.now_s = 50.0
        self.attempts: list[tuple[str, Request]] = []
        self.pauses_s: list[float] = []
        self.woken = 0
        self.clocks: dict[str, int] = {}
        self.answers: dict[str, Callable[[], Any]] = {e: lambda: OK for e in (A, B, C)}
        self.fleet = Fleet(
            [A, B, C],
            make_guard=lambda name: CircuitGuard(
                Breaker(fail_max=fail_max), clock=self.clock, name=name
            ),
            make_server_clock=lambda: ServerClock(self.clock, lambda: WALL_S),
            spread=spread,
            clock=self.clock,
            randomness=random.Random(5),
        )
        self.fleet.on_away = self._wake
        self.planner = FleetPlanner(
            self.fleet,
            retry=Retry(),
            timeout_s=10.0,
            server_clock=ServerClock(self.clock, lambda: WALL_S),
            clock=self.clock,
            randomness=random.Random(7),
            notice=lambda name, error: None,
        )
        self.probes = Probes(self.fleet, new_id=self.planner.new_id, clock=self.clock)

    def _wake(self) -> None:
        self.woken += 1

    def clock(self) -> float:
        return self.now_s

    def plan(self, operation: Operation[Any] | None = None, *, replay: bool = True) -> Plan:
        call: Call = prepare(
            operation or GetMemory("m"), now_ms=lambda: 0, randomness=random.Random(3)
        )
        spec = msgspec.structs.replace(call.spec, replay=replay)
        return self.planner.plan(msgspec.structs.replace(call, spec=spec))

    def outcome(self, endpoint: str, request: Request) -> Outcome:
        now_ms = int((WALL_S + self.now_s - 50.0) * 1000) + self.clocks.get(endpoint, 0)
        answer = self.answers[endpoint]()
        if isinstance(answer, errors.TransportError):
            return answer
        assert request.deadline_ms is not None
        if request.deadline_ms <= now_ms:
            answer = errors.DeadlineExceeded("x")
        body = answer.reply() if isinstance(answer, errors.RecollectError) else answer
        return Reply(v=1, id=request.id, now_ms=now_ms, body=msgspec.msgpack.encode(body))

    def follow(self, plan: Plan) -> Any:
        step = next(plan)
        while True:
            try:
                if isinstance(step, Pause):
                    self.now_s += step.seconds
                    self.pauses_s.append(step.seconds)
                    step = plan.send(None)
                else:
                    assert isinstance(step, AttemptAt)
                    request = decode_request(step.frame)
                    self.attempts.append((step.endpoint, request))
                    step = plan.send(self.outcome(step.endpoint, request))
            except StopIteration as end:
                return end.value

    def call(self, operation: Operation[Any] | None = None) -> Any:
        return self.follow(self.plan(operation))

    def probe(self) -> list[str]:
        """Send the probes that are due; whom they went to."""
        asked: list[str] = []
        steps = self.probes.round()
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration:
                return asked
            assert isinstance(step, AttemptAt), "there are no names to be looked up here"
            asked.append(step.endpoint)
            outcome = self.outcome(step.endpoint, decode_request(step.frame))

    @property
    def asked(self) -> list[str]:
        return [endpoint for endpoint, _ in self.attempts]

    def healthy(self) -> set[str]:
        return {one["endpoint"] for one in self.fleet.status()["endpoints"] if one["healthy"]}

    def fail(self, endpoint: str, error: type[errors.RecollectError]) -> None:
        self.answers[endpoint] = lambda: error("x")

    def mend(self, endpoint: str) -> None:
        self.answers[endpoint] = lambda: OK


def test_calls_go_to_all_by_turns() -> None:
    world = World()
    for _ in range(9):
        assert world.call() == OK
    assert Counter(world.asked) == {A: 3, B: 3, C: 3}


def test_or_to_one_as_long_as_it_answers() -> None:
    world = World(spread=False)
    for _ in range(5):
        world.call()
    (kept,) = set(world.asked)
    world.fail(kept, errors.ConnectionLost)
    for _ in range(5):
        world.call()
    assert len(set(world.asked[6:])) == 1
    assert world.asked[6] != kept


def test_whoever_has_less_to_do_is_asked_first() -> None:
    world = World()
    under_way = [world.plan() for _ in range(2)]
    busy = [next(plan) for plan in under_way]
    world.call()
    assert world.asked[0] not in {step.endpoint for step in busy if isinstance(step, AttemptAt)}
    for plan in under_way:
        plan.close()
    for _ in range(9):
        world.call()
    assert max(Counter(world.asked).values()) <= 4


@pytest.mark.parametrize(
    "error",
    [errors.ConnectionLost, errors.Unreachable, errors.ShuttingDown],
)
def test_who_is_gone_is_left_at_once_and_asked_no_more(error: type[errors.RecollectError]) -> None:
    world = World()
    world.fail(A, error)
    for _ in range(9):
        assert world.call(AddMemory("text")) == OK
    assert world.pauses_s == []
    assert Counter(world.asked)[A] == 1
    assert len(world.asked) == 10
    assert world.woken == 1
    assert world.healthy() == {B, C}


def test_a_write_keeps_its_key_wherever_it_goes() -> None:
    world = World()
    for endpoint in (A, B):
        world.fail(endpoint, errors.ConnectionLost)
    world.call(AddMemory("text"))
    world.call(AddMemory("text"))
    first = [request for _, request in world.attempts[:-1]]
    assert len({request.key for request in first}) == 1
    assert first[0].key is not None
    assert len({request.id for request in first}) == len(first)


@pytest.mark.parametrize("error", [errors.Overloaded, errors.StorageFailed])
def test_who_cannot_just_now_is_passed_by_but_not_given_up(
    error: type[errors.RecollectError],
) -> None:
    world = World()
    world.fail(A, error)
    for _ in range(6):
        assert world.call() == OK
    assert world.pauses_s == []
    assert world.healthy() == {A, B, C}


def test_when_all_have_failed_there_is_a_pause_and_then_all_are_tried_again() -> None:
    world = World()
    for endpoint in (A, B, C):
        world.fail(endpoint, errors.Overloaded)
    with pytest.raises(errors.Overloaded):
        world.call()
    assert Counter(world.asked) == {A: 4, B: 4, C: 4}
    assert len(world.pauses_s) == 3


def test_what_is_not_safe_to_send_twice_goes_elsewhere_only_if_it_was_not_sent() -> None:
    world = World()
    for endpoint in (A, B, C):
        world.fail(endpoint, errors.ConnectionLost)
    with pytest.raises(errors.ConnectionLost):
        world.follow(world.plan(replay=False))
    assert len(world.asked) == 1
    world = World()
    for endpoint in (A, B):
        world.fail(endpoint, errors.Unreachable)
    for _ in range(3):
        assert world.follow(world.plan(replay=False)) == OK


@pytest.mark.parametrize("error", [errors.InvalidArgument, errors.NotFound, errors.Forbidden])
def test_what_is_wrong_with_the_call_is_wrong_everywhere(
    error: type[errors.RecollectError],
) -> None:
    world = World()
    for endpoint in (A, B, C):
        world.fail(endpoint, error)
    with pytest.raises(error):
        world.call()
    assert len(world.asked) == 1
    assert world.healthy() == {A, B, C}


def test_a_probe_brings_back_who_answers_again_and_probes_become_rarer() -> None:
    world = World()
    world.fail(A, errors.ConnectionLost)
    while A not in world.asked:
        world.call()
    times_s = []
    for _ in range(2_000):
        world.now_s += 0.01
        if world.probe():
            times_s.append(world.now_s)
    pauses = [after - before for before, after in pairwise(times_s)]
    assert pauses[0] < 0.25
    assert 0.9 < max(pauses) < 2.1
    assert 8 < len(times_s) < 30
    world.mend(A)
    world.now_s += 3.0
    assert world.probe() == [A]
    assert world.healthy() == {A, B, C}
    assert world.fleet.probe_in_s() is None
    before = len(world.asked)
    for _ in range(3):
        world.call()
    assert A in world.asked[before:]


def test_who_is_still_draining_stays_away() -> None:
    world = World()
    world.fail(A, errors.ShuttingDown)
    while A not in world.asked:
        world.call()
    world.now_s += 3.0
    assert world.probe() == [A]
    assert world.healthy() == {B, C}


def test_an_outage_is_one_failure_however_many_calls_were_under_way() -> None:
    world = World(fail_max=2)
    plans = [world.plan() for _ in range(30)]
    steps = [next(plan) for plan in plans]
    lost = 0
    for plan, step in zip(plans, steps, strict=True):
        assert isinstance(step, AttemptAt)
        if step.endpoint == A:
            lost += 1
            plan.send(errors.ConnectionLost("x"))
    assert lost == 10
    status = {one["endpoint"]: one for one in world.fleet.status()["endpoints"]}
    assert (status[A]["state"], status[A]["failures"]) == ("closed", 1)
    assert not status[A]["healthy"]


def test_each_endpoint_has_a_breaker_that_opens_on_the_nth_failure_in_a_row() -> None:
    world = World(fail_max=3)
    world.fail(A, errors.Overloaded)
    while Counter(world.asked)[A] < 3:
        world.call()
    status = world.fleet.status()
    assert status["state"] == "closed"
    assert status["opened_count"] == 1
    states = {one["endpoint"]: one["state"] for one in status["endpoints"]}
    assert states == {A: "open", B: "closed", C: "closed"}
    for _ in range(9):
        world.call()
    assert Counter(world.asked)[A] == 3
    # No probe before its time is over; then one, and that closes it.
    world.now_s += 3.0
    assert world.probe() == []
    world.mend(A)
    world.now_s += 3.0
    assert world.probe() == [A]
    assert world.healthy() == {A, B, C}
    assert {one["state"] for one in world.fleet.status()["endpoints"]} == {"closed"}


def test_when_all_circuits_are_open_a_call_fails_at_once_and_one_probes_later() -> None:
    world = World(fail_max=1)
    for endpoint in (A, B, C):
        world.fail(endpoint, errors.ConnectionLost)
    with pytest.raises(errors.ConnectionLost):
        world.call()
    asked = len(world.asked)
    with pytest.raises(errors.CircuitOpen):
        world.call()
    assert len(world.asked) == asked
    assert world.fleet.status()["state"] == "open"
    for endpoint in (A, B, C):
        world.mend(endpoint)
    world.now_s += 6.0
    assert world.call() == OK
    assert world.fleet.status()["state"] == "closed"


def test_where_none_is_healthy_all_are_tried_all_the_same() -> None:
    world = World()
    for endpoint in (A, B, C):
        world.fail(endpoint, errors.ConnectionLost)
    with pytest.raises(errors.ConnectionLost):
        world.call()
    assert world.healthy() == set()
    world.mend(B)
    assert world.call() == OK
    assert world.healthy() == {B}


def test_a_reset_thinks_well_of_all() -> None:
    world = World(fail_max=1)
    for endpoint in (A, B, C):
        world.fail(endpoint, errors.ConnectionLost)
    with pytest.raises(errors.ConnectionLost):
        world.call()
    world.fleet.reset()
    assert world.healthy() == {A, B, C}
    assert world.fleet.status()["state"] == "closed"


def test_each_endpoint_has_a_clock_of_its_own() -> None:
    world = World()
    world.clocks = {A: 60_000, B: -60_000, C: 0}
    for _ in range(12):
        assert world.call() == OK
    # The first call at the one that is ahead expires there, and no other does.
    assert len(world.asked) == 13
    assert world.pauses_s == []


def test_names_bring_new_endpoints_and_take_old_ones_away() -> None:
    world = World()
    under_way = world.plan()
    step = next(under_way)
    assert isinstance(step, AttemptAt)
    others = [endpoint for endpoint in (A, B, C) if endpoint != step.endpoint]
    new = "tcp://10.0.0.4:7331"
    world.answers[new] = lambda: OK
    # Whoever was asked is still listened to, though no further call goes there.
    assert world.fleet.looked([*others[:1], new]) == {others[0], new, step.endpoint}
    for _ in range(6):
        world.call()
    assert set(world.asked) == {others[0], new}
    under_way.close()
    assert world.fleet.looked([others[0], new]) == {others[0], new}
