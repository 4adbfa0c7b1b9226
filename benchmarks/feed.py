"""The change feed: how soon a subscriber knows, beside a bare PUB and SUB, and what those who wait
cost the others."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import zmq

from benchmarks.load import latencies_us
from benchmarks.service import serving
from benchmarks.table import Row, at_most, medians, p50, show
from recollect import AsyncMemoryClient, MemoryClient

CALLS = 2_000
SUBSCRIBERS = 1_000
ROUNDS = 3
PAUSE_S = 0.001
CONTENT = "The deploy of the website runs every Friday at noon"


@contextmanager
def child(work: Callable[..., None], *args: Any) -> Iterator[Connection]:
    """Another process, with a line to it; what it notes is of the same clock."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=work, args=(theirs, *args), daemon=True
    )
    process.start()
    try:
        assert ours.recv() == "ready"
        yield ours
    finally:
        process.kill()
        process.join()


def _subscriber(line: Connection, endpoint: str, count: int) -> None:
    with MemoryClient(endpoint) as client, client.subscribe(namespace="user:bench") as changes:
        line.send("ready")
        line.send([time.perf_counter() for _, _ in zip(range(count), changes, strict=False)])


def _sub(line: Connection, endpoint: str, count: int) -> None:
    socket = zmq.Context().socket(zmq.SUB)
    socket.subscribe(b"")
    socket.connect(endpoint)
    socket.recv()
    line.send("ready")
    seen: list[float] = []
    while len(seen) < count:
        if socket.recv() != b"?":
            seen.append(time.perf_counter())
    line.send(seen)


def feed_delays_us(endpoint: str, count: int) -> list[float]:
    """From the acknowledgement of a write to a subscriber that knows of it."""
    written = []
    with child(_subscriber, endpoint, count) as line, MemoryClient(endpoint) as client:
        for number in range(count):
            client.add_memory(f"{CONTENT} {number}", namespace="user:bench")
            written.append(time.perf_counter())
            time.sleep(PAUSE_S)
        seen = line.recv()
    return [1e6 * (after - before) for before, after in zip(written, seen, strict=True)]


def pub_delays_us(count: int) -> list[float]:
    """From a PUB socket to a SUB socket, with nothing in between."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_sub, args=(theirs, f"tcp://127.0.0.1:{port}", count), daemon=True
    )
    process.start()
    try:
        # A PUB says nothing of who listens: it is asked until somebody does.
        while not ours.poll(0.01):
            socket.send(b"?")
        assert ours.recv() == "ready"
        sent = []
        for _ in range(count):
            sent.append(time.perf_counter())
            socket.send(CONTENT.encode())
            time.sleep(PAUSE_S)
        seen = ours.recv()
    finally:
        process.kill()
        process.join()
        socket.close(0)
    return [1e6 * (after - before) for before, after in zip(sent, seen, strict=True)]


def _idle(line: Connection, endpoint: str, count: int) -> None:
    async def wait() -> None:
        async with AsyncMemoryClient(endpoint) as client:

            async def one(number: int) -> None:
                async for _ in client.subscribe(namespace=f"user:idle{number}"):
                    pass

            tasks = [asyncio.create_task(one(number)) for number in range(count)]
            while (await client.stats())["requests"]["waiting"] < count:
                await asyncio.sleep(0.05)
            line.send("ready")
            await asyncio.gather(*tasks)

    asyncio.run(wait())


def add_us(endpoint: str, calls: int) -> float:
    """How long a write takes."""
    with MemoryClient(endpoint) as client:

        def add() -> None:
            client.add_memory(CONTENT, namespace="user:b")

        return p50(latencies_us(add, calls))


def measured(endpoint: str, calls: int, subscribers: int) -> list[Row]:
    """Both, in turns."""

    def measure() -> dict[str, float]:
        found = {"pub": p50(pub_delays_us(calls)), "feed": p50(feed_delays_us(endpoint, calls))}
        found["alone"] = add_us(endpoint, calls)
        with child(_idle, endpoint, subscribers):
            found["beside"] = add_us(endpoint, calls)
        return found

    found = medians(measure, ROUNDS)
    return [
        at_most(
            "from the acknowledgement to a subscriber, p50",
            found["feed"],
            found["pub"],
            3.0,
            "µs",
            "PUB to SUB",
        ),
        at_most(
            f"add_memory beside {subscribers:,} who wait, p50",
            found["beside"],
            found["alone"],
            1.1,
            "µs",
            "alone",
        ),
    ]


def main(argv: list[str] | None = None) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--subscribers", type=int, default=SUBSCRIBERS)
    given = parser.parse_args(argv)
    with serving() as service:
        rows = measured(service.endpoint, given.calls, given.subscribers)
    return show("The change feed beside the raw limits of this machine", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
