"""get, add and batch beside a raw echo and raw SQLite; start-up and import beside bare Python."""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.load import ignore, latencies_us, throughput
from benchmarks.raw import EchoClient, RawStore, echo_server
from benchmarks.service import CONTENT, Service, folder, store
from benchmarks.table import Row, at_least, at_most, medians, p50, show
from recollect import MemoryClient

CLIENTS = 8
SECONDS = 2.0
ROUNDS = 3
DIMENSIONS = 256
STARTUP_MEMORIES = 100_000


def reads(service: Service) -> list[Row]:
    """get_memory beside an echo of the same bytes."""
    with MemoryClient(service.endpoint) as client:
        ids = [client.add_memory(CONTENT.format(n))["memory_id"] for n in range(100)]
        answer: Any = client.get_memory(ids[0])
        request = {"memory_id": ids[0]}

        def measure() -> dict[str, float]:
            turns = itertools.cycle(ids)
            with echo_server(answer) as echo_endpoint:
                echo = EchoClient(echo_endpoint, request)
                echo_us = p50(latencies_us(echo.call, 3000))
                get_us = p50(latencies_us(lambda: ignore(client.get_memory(next(turns))), 3000))
                echo_rate = throughput(
                    lambda _: EchoClient(echo_endpoint, request).call, CLIENTS, SECONDS
                )
            get_rate = throughput(lambda _: _getter(service.endpoint, ids), CLIENTS, SECONDS)
            return {"echo": echo_us, "get": get_us, "echo/s": echo_rate, "get/s": get_rate}

        found = medians(measure, ROUNDS)
    return [
        at_most("get_memory, p50", found["get"], found["echo"], 1.5, "µs", "raw echo"),
        at_least(
            f"get_memory, {CLIENTS} clients", found["get/s"], found["echo/s"], 0.7, "/s", "raw echo"
        ),
    ]


def _getter(endpoint: str, ids: list[str]) -> Callable[[], None]:
    client, turns = MemoryClient(endpoint), itertools.cycle(ids)
    return lambda: ignore(client.get_memory(next(turns)))


def _adder(endpoint: str, number: int) -> Callable[[], None]:
    client, turns = MemoryClient(endpoint), itertools.count(number * 10**6)
    return lambda: ignore(client.add_memory(CONTENT.format(next(turns)), tags=["bench"]))


def writes(service: Service, place: Path) -> list[Row]:
    """add_memory and batches beside the same rows written to SQLite by hand."""
    raw = RawStore(place / "raw", DIMENSIONS)
    counter = itertools.count()

    def raw_commit(size: int, writes: int = 1) -> None:
        raw.commit([CONTENT.format(next(counter)) for _ in range(size)], writes)

    with MemoryClient(service.endpoint, timeout=60.0) as client:
        request: dict[str, Any] = {"content": CONTENT.format(0), "tags": ["bench"]}
        added: Any = client.add_memory(**request)

        def batch() -> None:
            items = [{"content": CONTENT.format(n), "tags": ["bench"]} for n in range(1000)]
            client.batch_add_memories(items)

        def measure() -> dict[str, float]:
            with echo_server(added) as echo_endpoint:
                echo_us = p50(latencies_us(EchoClient(echo_endpoint, request).call, 2000))
            with echo_server(added, place / f"echo{next(counter)}") as echo_endpoint:
                writing_us = p50(latencies_us(EchoClient(echo_endpoint, request).call, 500))
            one_us = p50(latencies_us(lambda: raw_commit(1), 500))
            thousand_us = p50(latencies_us(lambda: raw_commit(1000), 10, warmup=2))
            add_us = p50(latencies_us(_adder(service.endpoint, 99), 500))
            batch_us = p50(latencies_us(batch, 10, warmup=2))
            before = client.stats()["storage"]
            add_rate = throughput(lambda n: _adder(service.endpoint, n), CLIENTS, SECONDS)
            after = client.stats()["storage"]
            written = after["transactions"] - before["transactions"]
            group = max(1, round(written / (after["commits"] - before["commits"])))
            group_us = p50(latencies_us(lambda: raw_commit(group, group), 300, warmup=20))
            return {
                "echo": echo_us,
                "one": one_us,
                "writing echo": writing_us,
                "group": group,
                "group/s": group * 1e6 / group_us,
                "thousand/s": 1000e6 / thousand_us,
                "add": add_us,
                "add/s": add_rate,
                "batch/s": 1000e6 / batch_us,
            }

        found = medians(measure, ROUNDS)
    raw.close()
    allowed = found["echo"] + 1.5 * found["one"]
    return [
        at_most("add_memory, p50", found["add"], allowed, 1.0, "µs", "echo + 1.5 raw commits"),
        # Whoever sleeps through a commit is woken more slowly than a bare echo shows.
        Row(
            "add_memory, p50, beside one that only writes",
            f"{found['add']:,.1f} µs",
            f"echo with a raw commit {found['writing echo']:,.1f} µs",
            found["add"] / found["writing echo"],
            "shown",
            True,
        ),
        at_least(
            f"add_memory, {CLIENTS} clients",
            found["add/s"],
            found["group/s"],
            0.5,
            "/s",
            f"raw group commit of {found['group']:.0f}",
        ),
        at_least(
            "batch_add_memories of 1,000",
            found["batch/s"],
            found["thousand/s"],
            0.6,
            "/s",
            "raw SQLite, one transaction",
        ),
    ]


def startup(place: Path, memories: int) -> list[Row]:
    """Ready with many memories, beside importing the same modules; the client's import."""
    service = Service(place / "startup")
    service.start()
    with MemoryClient(service.endpoint, timeout=120.0) as client:
        store(client, ({"content": CONTENT.format(n)} for n in range(memories)), 10_000)
    service.stop()
    environment = service.environment

    def measure() -> dict[str, float]:
        ready_s = service.start()
        service.stop()
        return {
            "ready": ready_s,
            "modules": _python_s(
                "import recollect.cli.app, recollect.orchestrator.running.process", environment
            ),
            "zmq": _python_s("import zmq", environment),
            "client": _python_s("import recollect.client", environment),
        }

    found = medians(measure, 5)
    return [
        at_most(
            f"ready with {memories:,} memories, beyond imports",
            1000 * (found["ready"] - found["modules"]),
            2000,
            1.0,
            "ms",
            "bound",
        ),
        at_most(
            "importing the client, beyond Python with pyzmq",
            1000 * (found["client"] - found["zmq"]),
            100,
            1.0,
            "ms",
            "bound",
        ),
    ]


def _python_s(script: str, environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    return time.perf_counter() - started


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure everything and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument("--startup", type=int, default=STARTUP_MEMORIES, help="memories at start")
    memories = parser.parse_args(arguments).startup
    with folder() as place:
        service = Service(place / "data")
        service.start()
        try:
            rows = reads(service) + writes(service, place)
        finally:
            service.stop()
        rows += startup(place, memories)
    return show("The core beside the raw limits of this machine", rows)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
