"""Plans of calls, followed with a clock of our own: no network, no sleeping."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from recollect.client.breaker import CircuitGuard
from recollect.client.calling import Attempt, Outcome, Pause, Plan, Planner, Step, backoff_s
from recollect.client.encoding import Call, Speaker, prepare
from recollect.client.server_clock import ServerClock
from recollect.client.settings import Breaker, Retry
from recollect.protocol import errors
from recollect.protocol.envelope import Reply, Request, decode_request
from recollect.protocol.operation import Operation
from recollect.protocol.operations import AddMemory, GetMemory

OK: dict[str, Any] = {"status": "success", "memory_id": "m"}
WALL_S = 1_700_000_000.0


class World:
    """A planner with its clock, and what came out of following its plans."""

    def __init__(self, *, fail_max: int = 100, retry: Retry | None = None) -> None:
        self.now_s = 50.0
        self.server_ahead_ms = 0
        self.steps: list[Step] = []
        self.noticed: list[tuple[str, str]] = []
        self.guard = CircuitGuard(Breaker(fail_max=fail_max), clock=self.clock)
        self.server_clock = ServerClock(self.clock, lambda: WALL_S)
        self.planner = Planner(
            guard=self.guard,
            retry=retry or Retry(),
            timeout_s=10.0,
            server_clock=self.server_clock,
            clock=self.clock,
            randomness=random.Random(7),
            notice=lambda name, error: self.noticed.append((name, error.code)),
        )

    def clock(self) -> float:
        return self.now_s

    def server_ms(self) -> int:
        return int((WALL_S + self.now_s - 50.0) * 1000) + self.server_ahead_ms

    def reply(self, body: dict[str, Any] | errors.RecollectError) -> Reply:
        plain = body.reply() if isinstance(body, errors.RecollectError) else body
        return Reply(v=1, id=1, now_ms=self.server_ms(), body=msgspec.msgpack.encode(plain))

    def call(self, operation: Operation[Any] | None = None) -> Call:
        return prepare(
            operation or GetMemory("m"),
            now_ms=self.server_clock.now_ms,
            randomness=random.Random(3),
        )

    def follow(self, plan: Plan, *outcomes: Outcome | Callable[[Attempt], Outcome]) -> Any:
        """Follow a plan: outcomes are those of its attempts; pauses only move the clock."""
        script = list(outcomes)
        step = next(plan)
        while True:
            self.steps.append(step)
            try:
                if isinstance(step, Pause):
                    self.now_s += step.seconds
                    step = plan.send(None)
                else:
                    assert isinstance(step, Attempt)
                    outcome = script.pop(0)
                    step = plan.send(outcome(step) if callable(outcome) else outcome)
            except StopIteration as end:
                assert not script, "the plan ended before the script"
                return end.value

    @property
    def requests(self) -> list[Request]:
        return [decode_request(step.frame) for step in self.steps if isinstance(step, Attempt)]

    @property
    def pauses_s(self) -> list[float]:
        return [step.seconds for step in self.steps if isinstance(step, Pause)]


def test_a_call_that_is_answered_takes_one_attempt() -> None:
    world = World()
    answer = world.follow(
        world.planner.plan(world.call(), Speaker("agent", "session", "task")), world.reply(OK)
    )
    assert answer == OK
    (request,) = world.requests
    assert request.op == "get_memory"
    assert msgspec.msgpack.decode(request.body) == {"memory_id": "m"}
    assert request.deadline_ms == int(WALL_S * 1000) + 10_000
    assert (request.agent, request.session, request.task) == ("agent", "session", "task")
    assert request.key is None
    first = world.steps[0]
    assert isinstance(first, Attempt)
    assert first.timeout_s == 10.0


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (errors.ConnectionLost("x"), 4),
        (errors.Overloaded("x"), 4),
        (errors.ShuttingDown("x"), 4),
        (errors.StorageFull("x"), 4),
        (errors.NotYetVisible("x"), 4),
        # Once at once, because the clocks may differ; then like the others.
        (errors.DeadlineExceeded("x"), 5),
        (errors.Unreachable("x"), 2),
        (errors.InvalidArgument("x"), 1),
        (errors.NotFound("x"), 1),
        (errors.VersionConflict("x"), 1),
        (errors.IdempotencyConflict("x"), 1),
        (errors.InternalError("x"), 1),
        (errors.ClientClosed("x"), 1),
    ],
)
def test_tries_again_only_where_that_can_help(error: errors.RecollectError, attempts: int) -> None:
    world = World()
    outcome = error if isinstance(error, errors.TransportError) else world.reply(error)
    with pytest.raises(type(error)):
        world.follow(world.planner.plan(world.call()), *[outcome] * attempts)
    assert len(world.requests) == attempts


def test_an_operation_that_is_not_safe_to_send_again_is_not() -> None:
    world = World()
    call = world.call()
    call = msgspec.structs.replace(call, spec=msgspec.structs.replace(call.spec, replay=False))
    with pytest.raises(errors.ConnectionLost):
        world.follow(world.planner.plan(call), errors.ConnectionLost("x"))


def test_a_write_keeps_its_key_over_all_attempts_and_each_attempt_has_its_own_id() -> None:
    world = World()
    lost = errors.ConnectionLost("x")
    world.follow(world.planner.plan(world.call(AddMemory("text"))), lost, lost, world.reply(OK))
    keys = {request.key for request in world.requests}
    assert len(keys) == 1
    assert None not in keys
    assert len({request.id for request in world.requests}) == 3


def test_pauses_grow_and_have_jitter_and_a_bound() -> None:
    world = World(retry=Retry(attempts_max=8, backoff_ms=50, backoff_ms_max=400))
    with pytest.raises(errors.ConnectionLost):
        world.follow(world.planner.plan(world.call()), *[errors.ConnectionLost("x")] * 8)
    wholes_s = [0.05, 0.1, 0.2, 0.4, 0.4, 0.4, 0.4]
    assert len(world.pauses_s) == 7
    for pause_s, whole_s in zip(world.pauses_s, wholes_s, strict=True):
        assert whole_s / 2 <= pause_s <= whole_s
    assert len(set(world.pauses_s)) == 7


def test_the_same_seed_gives_the_same_pauses() -> None:
    pauses = [[backoff_s(Retry(), n, random.Random(5)) for n in range(1, 9)] for _ in range(2)]
    assert pauses[0] == pauses[1]


def test_waits_as_long_as_the_orchestrator_asks() -> None:
    world = World()
    busy = world.reply(errors.Overloaded("x", retry_after_ms=3000))
    assert world.follow(world.planner.plan(world.call()), busy, world.reply(OK)) == OK
    assert world.pauses_s == [3.0]


def test_gives_up_at_once_where_the_pause_would_outlast_the_deadline() -> None:
    world = World()
    busy = world.reply(errors.Overloaded("x", retry_after_ms=10_000))
    with pytest.raises(errors.Overloaded):
        world.follow(world.planner.plan(world.call()), busy)
    assert world.pauses_s == []


def test_the_time_left_shrinks_from_attempt_to_attempt() -> None:
    world = World()

    def slow_loss(attempt: Attempt) -> Outcome:
        world.now_s += 3.0
        return errors.ConnectionLost("x")

    call = world.call(GetMemory("m", timeout=5.0))
    with pytest.raises(errors.ConnectionLost):
        world.follow(world.planner.plan(call), slow_loss, slow_loss)
    first, second = (step for step in world.steps if isinstance(step, Attempt))
    assert first.timeout_s == 5.0
    assert 1.9 < second.timeout_s < 2.0
    assert len({request.deadline_ms for request in world.requests}) == 1


def test_learns_the_orchestrators_clock_and_tries_again_at_once() -> None:
    world = World()
    world.server_ahead_ms = 3_600_000

    def judge(attempt: Attempt) -> Outcome:
        deadline_ms = decode_request(attempt.frame).deadline_ms
        assert deadline_ms is not None
        expired = deadline_ms < world.server_ms()
        return world.reply(errors.DeadlineExceeded("x") if expired else OK)

    assert world.follow(world.planner.plan(world.call()), judge, judge) == OK
    assert world.pauses_s == []
    assert world.follow(world.planner.plan(world.call()), judge) == OK


def test_a_jump_of_the_wall_clock_moves_no_deadline() -> None:
    wall_s = [WALL_S]
    clock = ServerClock(lambda: 50.0, lambda: wall_s[0])
    before_ms = clock.deadline_ms(60.0)
    wall_s[0] += 86_400
    assert clock.deadline_ms(60.0) == before_ms


def test_the_circuit_opens_after_so_many_failed_calls_and_refuses_the_next() -> None:
    world = World(fail_max=2)
    for _ in range(2):
        with pytest.raises(errors.Unreachable):
            world.follow(world.planner.plan(world.call()), *[errors.Unreachable("x")] * 2)
    with pytest.raises(errors.CircuitOpen):
        world.follow(world.planner.plan(world.call()))
    assert world.guard.status()["failures"] == 2


def test_a_call_that_succeeds_after_a_retry_is_no_failure() -> None:
    world = World(fail_max=1)
    world.follow(world.planner.plan(world.call()), errors.ConnectionLost("x"), world.reply(OK))
    assert world.guard.status()["failures"] == 0


def test_stops_retrying_when_the_circuit_opened_meanwhile() -> None:
    world = World(fail_max=1)
    plan = world.planner.plan(world.call())
    next(plan)
    assert isinstance(plan.send(errors.ConnectionLost("x")), Pause)
    world.guard.admit().failed(errors.ConnectionLost("of another call"))
    with pytest.raises(errors.ConnectionLost):
        plan.send(None)


@pytest.mark.parametrize("end", ["close", "interrupt"])
def test_a_plan_that_is_broken_off_gives_the_probe_free(end: str) -> None:
    world = World(fail_max=1)
    with pytest.raises(errors.RequestTimeout):
        world.follow(world.planner.plan(world.call()), *[errors.RequestTimeout("x")] * 4)
    world.now_s += 5
    plan = world.planner.plan(world.call())
    next(plan)
    with pytest.raises(errors.CircuitOpen):
        next(world.planner.plan(world.call()))
    if end == "close":
        plan.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            plan.throw(KeyboardInterrupt())
    assert world.follow(world.planner.plan(world.call()), world.reply(OK)) == OK
    assert world.guard.status()["state"] == "closed"


def test_a_pause_can_be_interrupted_by_an_error() -> None:
    world = World()
    plan = world.planner.plan(world.call())
    next(plan)
    assert isinstance(plan.send(errors.ConnectionLost("x")), Pause)
    with pytest.raises(errors.ClientClosed):
        plan.send(errors.ClientClosed("x"))


@pytest.mark.parametrize(
    "body",
    [
        b"\xc1",
        b"",
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode({"no": "status"}),
        msgspec.msgpack.encode({"status": "error"}),
        msgspec.msgpack.encode({"status": "error", "error": {"code": "not_found"}}),
        msgspec.msgpack.encode({"status": "error", "error": 5}),
        msgspec.msgpack.encode(None),
        b"\x81\xa6status\xa1\xff",
    ],
)
def test_an_answer_that_makes_no_sense_is_a_broken_line(body: bytes) -> None:
    world = World(retry=Retry(attempts_max=1))
    with pytest.raises(errors.ConnectionLost):
        world.follow(
            world.planner.plan(world.call()), Reply(v=1, id=1, now_ms=world.server_ms(), body=body)
        )


def test_an_error_of_a_newer_orchestrator_keeps_its_code() -> None:
    world = World()
    body = {
        "status": "error",
        "error": {
            "code": "moon_phase",
            "message": "not tonight",
            "retryable": False,
            "details": {"message": "also this", "phase": "full"},
        },
    }
    with pytest.raises(errors.RecollectError) as caught:
        world.follow(world.planner.plan(world.call()), world.reply(body))
    assert caught.value.code == "moon_phase"
    assert caught.value.details["phase"] == "full"


def test_failures_of_the_line_are_noticed_for_the_report_and_answers_are_not() -> None:
    world = World()
    with pytest.raises(errors.NotFound):
        world.follow(
            world.planner.plan(world.call()),
            errors.ConnectionLost("x"),
            world.reply(errors.NotFound("x")),
        )
    assert world.noticed == [("get_memory", "connection_lost")]
