"""P15: the breaker opens on the Nth failure, lets exactly one of 100 concurrent calls probe, and
closes on its success. Against a real endpoint that is down and comes back; only time is moved."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from recollect import AsyncMemoryClient, MemoryClient, RecollectError
from recollect.client import Breaker, Pool, Retry, Timeouts, sans_io
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.tools.clocks import Watch
from tests.harness.processes import OrchestratorProcess

FAIL_MAX = 5
RESET_S = 1_000.0
CALLS = 100
DONE_WITHIN_S = 30.0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """The clock of every client made in the test."""
    watch = Watch()
    clocks = SimpleNamespace(monotonic=watch.monotonic, time=time.time)
    monkeypatch.setattr(sans_io, "time", clocks)
    return watch


class Side(Protocol):
    """One client, asked in its own way to ping; an outcome is "success" or the error's code."""

    def ping(self, timeout_s: float | None = None) -> str: ...
    def start_pings(self, count: int) -> list[Future[str]]: ...
    def state(self) -> dict[str, Any]: ...
    def close(self) -> None: ...


def options(call_s: float) -> dict[str, Any]:
    return {
        "timeouts": Timeouts(call_s=call_s, connect_s=call_s),
        "retry": Retry(attempts_max=1),
        "breaker": Breaker(fail_max=FAIL_MAX, reset_timeout_s=RESET_S),
        "pool": Pool(connections_max=2 * CALLS),
    }


class Threads:
    """A blocking client, called from as many threads as there are calls."""

    def __init__(self, endpoint: str, call_s: float) -> None:
        self._client = MemoryClient(endpoint, **options(call_s))
        self._pool = ThreadPoolExecutor(CALLS)

    def ping(self, timeout_s: float | None = None) -> str:
        try:
            return self._client.ping(timeout=timeout_s)["status"]
        except RecollectError as error:
            return error.code

    def start_pings(self, count: int) -> list[Future[str]]:
        together = threading.Barrier(count)

        def ping() -> str:
            together.wait(DONE_WITHIN_S)
            return self.ping()

        return [self._pool.submit(ping) for _ in range(count)]

    def state(self) -> dict[str, Any]:
        return dict(self._client.get_circuit_breaker_status())

    def close(self) -> None:
        self._client.close()
        self._pool.shutdown()


class Asyncio:
    """An asyncio client, with all calls on one loop."""

    def __init__(self, endpoint: str, call_s: float) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = AsyncMemoryClient(endpoint, **options(call_s))

    async def _ping(self, timeout_s: float | None = None) -> str:
        try:
            return (await self._client.ping(timeout=timeout_s))["status"]
        except RecollectError as error:
            return error.code

    def ping(self, timeout_s: float | None = None) -> str:
        pinging = asyncio.run_coroutine_threadsafe(self._ping(timeout_s), self._loop)
        return pinging.result(DONE_WITHIN_S)

    def start_pings(self, count: int) -> list[Future[str]]:
        return [asyncio.run_coroutine_threadsafe(self._ping(), self._loop) for _ in range(count)]

    def state(self) -> dict[str, Any]:
        return dict(self._client.get_circuit_breaker_status())

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(DONE_WITHIN_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DONE_WITHIN_S)
        self._loop.close()


SIDES: dict[str, Callable[[str, float], Side]] = {"threads": Threads, "asyncio": Asyncio}


def settle(pings: list[Future[str]]) -> Counter[str]:
    return Counter(ping.result(DONE_WITHIN_S) for ping in pings)


@pytest.mark.parametrize("kind", SIDES)
def test_it_opens_on_the_nth_failure_and_one_of_100_calls_probes(
    kind: str, tmp_path: Path, watch: Watch
) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    side = SIDES[kind](process.endpoint, 0.1)
    with Trial("P15") as trial:
        try:
            for number in range(1, FAIL_MAX + 1):
                trial.case()
                said, state = side.ping(), side.state()["state"]
                trial.check(said == "unreachable", f"call {number} was told {said}")
                wanted = "open" if number == FAIL_MAX else "closed"
                trial.check(state == wanted, f"after {number} failures it is {state}")
            said = side.ping()
            trial.check(said == "circuit_open", f"an open circuit let a call through: {said}")
            watch.forward(RESET_S - 10)
            said = side.ping()
            trial.check(said == "circuit_open", f"it was tried too early: {said}")

            # Nobody is there yet: the one probe fails, and the circuit opens again.
            watch.forward(20)
            trial.case(CALLS)
            told = settle(side.start_pings(CALLS))
            trial.check(
                told == {"unreachable": 1, "circuit_open": CALLS - 1}, f"probing a dead end: {told}"
            )
            state = side.state()["state"]
            trial.check(state == "open", f"after a failed probe it is {state}")
        finally:
            side.close()


def pings_served(process: OrchestratorProcess) -> int:
    with process.client() as client:
        return int(client.stats()["requests"]["served"]["ping"])


@pytest.mark.parametrize("kind", SIDES)
def test_it_closes_when_the_probe_succeeds(kind: str, tmp_path: Path, watch: Watch) -> None:
    process = OrchestratorProcess(tmp_path / "data")
    side = SIDES[kind](process.endpoint, 20.0)
    with Trial("P15") as trial:
        try:
            for _ in range(FAIL_MAX):
                assert side.ping(0.1) == "unreachable"
            assert side.state()["state"] == "open"
            process.start()
            pinged = pings_served(process)
            # It is back but does not answer, so that the probe is under way while others call.
            process.signal(signal.SIGSTOP)
            watch.forward(RESET_S + 1)
            trial.case(CALLS)
            pings = side.start_pings(CALLS)
            wait_for(
                lambda: sum(ping.done() for ping in pings) >= CALLS - 1,
                within_s=DONE_WITHIN_S,
                what="all but one to be refused",
            )
            process.signal(signal.SIGCONT)
            told = settle(pings)
            trial.check(
                told == {"success": 1, "circuit_open": CALLS - 1}, f"probing what is back: {told}"
            )
            probes = pings_served(process) - pinged
            trial.check(probes == 1, f"{probes} probes arrived")
            trial.check(side.state()["state"] == "closed", "a good probe did not close it")
            told = settle(side.start_pings(CALLS))
            trial.check(told == {"success": CALLS}, f"once closed: {told}")
        finally:
            process.close()
            side.close()
