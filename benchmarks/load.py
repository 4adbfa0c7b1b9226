"""Clients as processes of their own, each calling as fast as it can, counted together."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

Work = Callable[[int], Callable[[], None]]


def _client(
    make: Work,
    number: int,
    seconds: float,
    barrier: Barrier,
    counts: multiprocessing.Queue[tuple[int, float]],
) -> None:
    call = make(number)
    for _ in range(20):
        call()
    barrier.wait(60)
    done, started = 0, time.perf_counter()
    until = started + seconds
    while time.perf_counter() < until:
        call()
        done += 1
    counts.put((done, time.perf_counter() - started))


def throughput(make: Work, clients: int, seconds: float) -> float:
    """Calls per second of several clients at once; `make(number)` gives a client's call."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(clients)
    counts: multiprocessing.Queue[tuple[int, float]] = context.Queue()
    processes = [
        context.Process(target=_client, args=(make, number, seconds, barrier, counts), daemon=True)
        for number in range(clients)
    ]
    for process in processes:
        process.start()
    results = [counts.get(timeout=seconds + 60) for _ in processes]
    for process in processes:
        process.join(30)
    return sum(done / elapsed for done, elapsed in results)


def latencies_us(call: Callable[[], None], calls: int, warmup: int = 200) -> list[float]:
    """How long each of some calls took."""
    for _ in range(warmup):
        call()
    samples = []
    for _ in range(calls):
        started = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - started) / 1000)
    return samples


def ignore(answer: object) -> None:
    """Nothing: the call itself is what is measured."""
