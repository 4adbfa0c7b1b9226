"""Measures one store; runs in the environment of that store.

    python -m benchmarks.peers.driving DRIVER --data FOLDER --folder FOLDER --out FILE

The same calls in the same order for every store, each bounded in count and in time: what searching
finds first, then what reading and searching take, adds last, since they change what is stored.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier as ProcessBarrier
from pathlib import Path
from typing import Any

from benchmarks.peers.data import QUERIES, Data
from benchmarks.peers.peer import Driver, NotOffered, Session

CLIENTS = 8
BEGINS_WITHIN_S = 120.0
WARMUP = 20
CLIENT_NUMBERS = 10**6
"""Numbers that each client may add."""

Call = Callable[[int], object]


def calls_of(session: Session, size: int) -> dict[str, Call]:
    """Each kind of call of one client, by how many it has made before."""
    return {
        "get": lambda turn: session.get(turn * 7919 % size),
        "search": lambda turn: session.search(turn % QUERIES),
        "filtered": lambda turn: session.filtered(turn % QUERIES),
        "add": lambda turn: session.add(size + turn),
    }


def alone(call: Call, first: int, calls: int, seconds: float) -> dict[str, float]:
    """What a call takes, of one client."""
    until = time.perf_counter() + seconds
    samples: list[float] = []
    for turn in range(first, first + WARMUP):
        call(turn)
        if time.perf_counter() > until - seconds / 2:
            break
    for turn in range(first + WARMUP, first + WARMUP + calls):
        began = time.perf_counter_ns()
        call(turn)
        samples.append((time.perf_counter_ns() - began) / 1e6)
        if time.perf_counter() > until:
            break
    ordered = sorted(samples)
    return {
        "p50_ms": statistics.median(ordered),
        "p99_ms": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        "calls": len(ordered),
    }


def _client(
    make: Callable[[], dict[str, Call]],
    kind: str,
    number: int,
    seconds: float,
    barrier: Any,
    report: Callable[[tuple[float, str | None]], None],
) -> None:
    """One of several clients; reports how many calls a second it made, or what went wrong."""
    try:
        call = make()[kind]
        first = (number + 1) * CLIENT_NUMBERS
        call(first)
        barrier.wait(BEGINS_WITHIN_S)
        done, began = 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            done += 1
            call(first + done)
        report((done / (time.perf_counter() - began), None))
    except Exception as error:
        barrier.abort()
        report((0.0, f"{type(error).__name__}: {error}"))


def together(driver: Driver, size: int, kind: str, seconds: float, offset: int) -> float:
    """Calls a second of eight clients, each of which waits for its answers."""

    def make() -> dict[str, Call]:
        return calls_of(driver.session(), size)

    numbers = range(offset * CLIENTS, (offset + 1) * CLIENTS)
    results: list[tuple[float, str | None]] = []
    if driver.clients == "processes":
        context = multiprocessing.get_context("fork")
        barrier: ProcessBarrier = context.Barrier(CLIENTS)
        queue: multiprocessing.Queue[tuple[float, str | None]] = context.Queue()
        processes = [
            context.Process(
                target=_client, args=(make, kind, n, seconds, barrier, queue.put), daemon=True
            )
            for n in numbers
        ]
        for process in processes:
            process.start()
        results = [queue.get(timeout=seconds + 2 * BEGINS_WITHIN_S) for _ in processes]
        for process in processes:
            process.join(30)
    else:
        meeting = threading.Barrier(CLIENTS)
        threads = [
            threading.Thread(
                target=_client, args=(make, kind, n, seconds, meeting, results.append), daemon=True
            )
            for n in numbers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 2 * BEGINS_WITHIN_S)
    failed = [why for _, why in results if why is not None and "BrokenBarrier" not in why]
    if failed or len(results) < CLIENTS:
        raise RuntimeError(f"with {CLIENTS} clients: {failed[0] if failed else 'no answer'}")
    return sum(rate for rate, _ in results)


def resident_bytes(pids: list[int]) -> int:
    """Resident memory of some processes."""
    total = 0
    for pid in pids:
        # A worker of a server may have ended since they were listed.
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += 1024 * int(line.split()[1])
    return total


def measure(
    driver: Driver, data: Data, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Everything about one store."""
    began = time.perf_counter()
    driver.open(folder, data)
    try:
        print("  filling", flush=True)
        driver.fill()
        found: dict[str, Any] = {"filled_s": time.perf_counter() - began}
        session = driver.session()
        for kind, ask in (("search", session.search), ("filtered", session.filtered)):
            until = time.perf_counter() + 4 * options.seconds
            answers: list[list[int]] = []
            try:
                while len(answers) < QUERIES and time.perf_counter() < until:
                    answers.append(ask(len(answers)))
                found[f"{kind}_recall"] = data.recall(kind, answers)
            except NotOffered:
                found[f"{kind}_recall"] = None
        for kind, call in calls_of(session, data.size).items():
            print(f"  {kind}", flush=True)
            try:
                found[kind] = alone(call, 0, options.calls, options.seconds)
                rates = [
                    together(driver, data.size, kind, options.seconds, turn)
                    for turn in range(options.rounds)
                ]
                found[kind]["per_s"] = statistics.median(rates)
            except NotOffered:
                found[kind] = None
        found["resident_bytes"] = resident_bytes(driver.pids())
        # What some say only of a running server.
        found |= {"durability": driver.durability, "note": driver.note, "clients": driver.clients}
        if driver.version:
            found["version"] = driver.version
    finally:
        driver.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.driving", description=__doc__)
    parser.add_argument("driver")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    module = importlib.import_module(f"benchmarks.peers.drivers.{options.driver}")
    options.folder.mkdir(parents=True, exist_ok=True)
    found = measure(module.Driver(), Data(options.data), options.folder, options)
    options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
