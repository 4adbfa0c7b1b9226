"""The circuit breaker, with a clock that stands still unless told to move."""

from __future__ import annotations

import asyncio
import threading

import pybreaker
import pytest

from recollect.client.breaker import CircuitGuard, Permit
from recollect.client.settings import Breaker
from recollect.protocol import errors

LOST = errors.ConnectionLost("the line broke")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> CircuitGuard:
    return CircuitGuard(Breaker(fail_max=5, reset_timeout_s=30.0), clock=clock)


def fail(guard: CircuitGuard, times: int = 1) -> None:
    for _ in range(times):
        guard.admit().failed(LOST)


def state(guard: CircuitGuard) -> str:
    return guard.status()["state"]


@pytest.mark.parametrize("fail_max", [1, 2, 5, 17])
def test_opens_on_exactly_the_nth_failure_in_a_row(clock: Clock, fail_max: int) -> None:
    guard = CircuitGuard(Breaker(fail_max=fail_max), clock=clock)
    for _ in range(fail_max):
        assert state(guard) == "closed"
        fail(guard)
    assert state(guard) == "open"
    with pytest.raises(errors.CircuitOpen):
        guard.admit()


def test_a_success_in_between_starts_the_count_again(guard: CircuitGuard) -> None:
    fail(guard, 4)
    guard.admit().succeeded()
    fail(guard, 4)
    assert state(guard) == "closed"
    fail(guard)
    assert state(guard) == "open"


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (errors.ConnectionLost("x"), True),
        (errors.RequestTimeout("x"), True),
        (errors.Unreachable("x"), True),
        (errors.Overloaded("x"), True),
        (errors.DeadlineExceeded("x"), True),
        (errors.InvalidArgument("x"), False),
        (errors.LimitExceeded("x"), False),
        (errors.NotFound("x"), False),
        (errors.VersionConflict("x"), False),
        (errors.ShuttingDown("x"), False),
        (errors.StorageFull("x"), False),
        (errors.InternalError("x"), False),
        (errors.CircuitOpen("x"), False),
        (errors.ClientClosed("x"), False),
        (asyncio.CancelledError(), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_counts_what_the_line_did_and_not_what_the_request_was(
    guard: CircuitGuard, error: BaseException, counted: bool
) -> None:
    guard.admit().failed(error)
    assert guard.status()["failures"] == int(counted)


def test_an_answer_that_refuses_the_request_proves_the_line_good(guard: CircuitGuard) -> None:
    fail(guard, 4)
    guard.admit().failed(errors.NotFound("no such memory"))
    assert guard.status()["failures"] == 0


def test_a_cancelled_call_neither_counts_nor_starts_the_count_again(guard: CircuitGuard) -> None:
    fail(guard, 4)
    guard.admit().abandoned()
    assert guard.status()["failures"] == 4


def test_stays_open_until_the_reset_timeout(guard: CircuitGuard, clock: Clock) -> None:
    fail(guard, 5)
    clock.now_s += 29.9
    with pytest.raises(errors.CircuitOpen) as refusal:
        guard.admit()
    assert refusal.value.details["retry_after_ms"] == pytest.approx(100, abs=1)
    clock.now_s += 0.1
    guard.admit()
    assert state(guard) == "half-open"


def half_open(guard: CircuitGuard, clock: Clock) -> None:
    fail(guard, 5)
    clock.now_s += 30


def hundred_threads(guard: CircuitGuard) -> list[Permit]:
    barrier = threading.Barrier(100)
    permits: list[Permit] = []
    refusals: list[errors.CircuitOpen] = []

    def ask() -> None:
        barrier.wait(20)
        try:
            permits.append(guard.admit())
        except errors.CircuitOpen as refusal:
            refusals.append(refusal)

    threads = [threading.Thread(target=ask) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(permits) + len(refusals) == 100
    return permits


def test_of_100_threads_exactly_one_probes_and_its_success_closes(
    guard: CircuitGuard, clock: Clock
) -> None:
    half_open(guard, clock)
    (probe,) = hundred_threads(guard)
    assert state(guard) == "half-open"
    probe.succeeded()
    assert state(guard) == "closed"
    assert len(hundred_threads(guard)) == 100


def test_of_100_threads_exactly_one_probes_and_its_failure_opens(
    guard: CircuitGuard, clock: Clock
) -> None:
    half_open(guard, clock)
    (probe,) = hundred_threads(guard)
    probe.failed(LOST)
    assert state(guard) == "open"
    assert hundred_threads(guard) == []
    clock.now_s += 30
    assert len(hundred_threads(guard)) == 1


def test_of_100_tasks_exactly_one_probes_while_the_others_are_refused_at_once(
    guard: CircuitGuard, clock: Clock
) -> None:
    half_open(guard, clock)

    async def run() -> list[str]:
        answered = asyncio.Event()

        async def call() -> str:
            try:
                permit = guard.admit()
            except errors.CircuitOpen:
                return "refused"
            await answered.wait()
            permit.succeeded()
            return "probed"

        tasks = [asyncio.create_task(call()) for _ in range(100)]
        done, waiting = await asyncio.wait(tasks, timeout=20, return_when="FIRST_COMPLETED")
        assert len(done) == 99
        assert len(waiting) == 1
        answered.set()
        return await asyncio.gather(*tasks)

    results = asyncio.run(run())
    assert sorted(results) == ["probed", *["refused"] * 99]
    assert state(guard) == "closed"


def test_a_probe_that_is_cancelled_leaves_its_place_to_another(
    guard: CircuitGuard, clock: Clock
) -> None:
    half_open(guard, clock)
    guard.admit().abandoned()
    assert state(guard) == "half-open"
    probe = guard.admit()
    with pytest.raises(errors.CircuitOpen):
        guard.admit()
    probe.succeeded()
    assert state(guard) == "closed"


def test_a_call_from_before_the_trip_changes_nothing_when_it_ends(
    guard: CircuitGuard, clock: Clock
) -> None:
    old = guard.admit()
    half_open(guard, clock)
    old.succeeded()
    assert state(guard) == "open"
    probe = guard.admit()
    old.failed(LOST)
    old.abandoned()
    old.succeeded()
    assert state(guard) == "half-open"
    with pytest.raises(errors.CircuitOpen):
        guard.admit()
    probe.succeeded()
    old.failed(LOST)
    assert guard.status()["failures"] == 0


def test_reports_of_one_probe_count_once(guard: CircuitGuard, clock: Clock) -> None:
    half_open(guard, clock)
    probe = guard.admit()
    probe.failed(LOST)
    probe.failed(LOST)
    assert guard.status()["opened_count"] == 2
    probe.succeeded()
    assert state(guard) == "open"


def test_failures_from_many_threads_open_it_once(clock: Clock) -> None:
    guard = CircuitGuard(Breaker(fail_max=50), clock=clock)
    permits = hundred_threads(guard)
    barrier = threading.Barrier(100)

    def report(permit: Permit) -> None:
        barrier.wait(20)
        permit.failed(LOST)

    threads = [threading.Thread(target=report, args=(permit,)) for permit in permits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    status = guard.status()
    assert (status["state"], status["failures"], status["opened_count"]) == ("open", 50, 1)


def test_the_status_says_all_there_is_to_know(guard: CircuitGuard, clock: Clock) -> None:
    fail(guard, 5)
    clock.now_s += 10
    assert guard.status() == {
        "status": "success",
        "state": "open",
        "failures": 5,
        "fail_max": 5,
        "reset_timeout_s": 30.0,
        "retry_in_s": 20.0,
        "opened_count": 1,
        "last_error": "the line broke",
    }


def test_a_trip_is_told_once(clock: Clock) -> None:
    told: list[errors.RecollectError] = []
    guard = CircuitGuard(Breaker(fail_max=3), clock=clock, on_open=told.append)
    fail(guard, 3)
    assert [error.code for error in told] == ["circuit_open"]
    assert "the line broke" in told[0].message


def test_reset_closes_it(guard: CircuitGuard) -> None:
    fail(guard, 5)
    guard.reset()
    assert state(guard) == "closed"
    assert guard.status()["failures"] == 0
    fail(guard, 4)
    assert state(guard) == "closed"


def test_listeners_are_told_as_pybreaker_tells_them(clock: Clock) -> None:
    told: list[str] = []

    class Listener(pybreaker.CircuitBreakerListener):
        def before_call(self, cb: object, func: object, *args: object, **kwargs: object) -> None:
            told.append("before")

        def success(self, cb: object) -> None:
            told.append("success")

        def failure(self, cb: object, exc: BaseException) -> None:
            told.append("failure")

        def state_change(
            self,
            cb: object,
            old_state: pybreaker.CircuitBreakerState | None,
            new_state: pybreaker.CircuitBreakerState,
        ) -> None:
            # A listener may ask for the status, although it is told under the lock.
            assert watched.status()["fail_max"] == 1
            told.append(new_state.name)

    watched = CircuitGuard(Breaker(fail_max=1), clock=clock, listeners=[Listener()])
    watched.admit().succeeded()
    watched.admit().failed(LOST)
    clock.now_s += 5
    watched.admit().succeeded()
    expected = "before success before open failure half-open before closed success"
    assert told == expected.split()


def test_a_listener_that_fails_changes_nothing_but_the_log(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(pybreaker.CircuitBreakerListener):
        def before_call(self, cb: object, func: object, *args: object, **kwargs: object) -> None:
            raise ValueError("before_call")

        def success(self, cb: object) -> None:
            raise ValueError("success")

        def failure(self, cb: object, exc: BaseException) -> None:
            raise ValueError("failure")

        def state_change(self, cb: object, old_state: object, new_state: object) -> None:
            raise ValueError("state_change")

    guard = CircuitGuard(Breaker(fail_max=1, reset_timeout_s=5), clock=clock, listeners=[Failing()])
    guard.admit().succeeded()
    guard.admit().failed(LOST)
    assert state(guard) == "open"
    clock.now_s += 5
    probe = guard.admit()
    assert state(guard) == "half-open"
    probe.succeeded()
    assert state(guard) == "closed"
    told = {str(record.exc_info[1]) for record in caplog.records if record.exc_info}
    assert told == {"before_call", "success", "failure", "state_change"}
