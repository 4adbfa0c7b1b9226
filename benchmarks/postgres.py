"""PostgreSQL: searching beside pgvector's bare query, writing beside raw COPY, and three
orchestrators beside one.

    python -m benchmarks.postgres [--size 100000] [--calls 300] [--seconds 4]

A database is made by an orchestrator and filled by COPY, with all its indexes; the service then
works on it, and COPY on a copy of it. What is compared is done in turns: searches by a client of
the service and by psycopg, batches of memories by the service and by COPY into the same tables
with the same indexes, one durable transaction each, with vectors and words made beforehand. Then
the same clients call one orchestrator, and three on the same database: first with all of this
machine's cores for everybody, which one orchestrator may use up already, then each orchestrator
held to a share of a core, as if it had a small machine of its own.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks.held import held
from benchmarks.load import throughput
from benchmarks.postgres_store import DIMENSIONS, RawStore, Server, listed, server, text
from benchmarks.service import Service
from benchmarks.table import Row, at_least, at_most, p50, show
from recollect import MemoryClient
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.storage.postgres.readers import READER

BATCH = 1_000
BATCHES = 5
SIZE_MIN = 20_000
"""Fewer vectors have no index."""
K = 10
CLIENTS = 6
ROUNDS = 3
CORE_SHARE = 0.2
CORES_USED_MAX = 90.0
SCALED_MIN = 2.0
TIMEOUT_S = 600.0
BARE = f"""
SELECT num FROM vectors WHERE vector_dims(vector) = {DIMENSIONS}
ORDER BY CAST(vector AS halfvec({DIMENSIONS})) <#> CAST(%s AS halfvec({DIMENSIONS})) LIMIT {K}
"""


def service_on(url: str, folder: Path) -> Service:
    """An orchestrator on a database, not started yet."""
    service = Service(folder)
    service.environment |= {
        "RECOLLECT_STORAGE_URL": url,
        "RECOLLECT_REDIS_URL": "off",
        "RECOLLECT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
    }
    return service


def filled(on: Server, size: int, folder: Path) -> tuple[str, str]:
    """Two databases with the same memories."""
    url = on.make("service")
    maker = service_on(url, folder)
    maker.start()
    maker.stop()
    raw, randomness = RawStore(url), random.Random(7)
    for _ in range(max(SIZE_MIN, size) // BATCH):
        raw.commit([text(randomness) for _ in range(BATCH)])
    raw.index()
    raw.close()
    return url, on.make("raw", like="service")


def took_us(call: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - began_s)


def searched(memory: MemoryClient, url: str, calls: int) -> tuple[float, float]:
    """What a search takes by the service and by the bare query, in the median and in turns."""
    randomness = random.Random(11)
    embedder = HashedEmbedder(DIMENSIONS)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in READER:
            connection.execute(statement)
        served: list[float] = []
        bare: list[float] = []
        for number in range(calls):
            query = text(randomness)
            asked = listed(embedder.embed_now([query])[0])
            turns: list[tuple[list[float], Callable[[], object]]] = [
                (served, partial(memory.semantic_search, query, K)),
                (bare, partial(connection.execute, BARE, (asked,))),
            ]
            # Whoever asks second finds what the first has brought into the processor's cache.
            for samples, call in turns if number % 2 else reversed(turns):
                samples.append(took_us(call))
    return p50(served), p50(bare)


def stored(memory: MemoryClient, raw: RawStore) -> tuple[float, float]:
    """The memories a second of the service and of COPY, batch by batch in turns."""
    randomness = random.Random(13)
    served_s = copied_s = 0.0
    for _ in range(BATCHES):
        contents = [text(randomness) for _ in range(BATCH)]
        items: list[Any] = [{"content": content} for content in contents]
        began_s = time.perf_counter()
        memory.batch_add_memories(items, timeout=TIMEOUT_S)
        served_s += time.perf_counter() - began_s
        copied_s += raw.commit(contents)
    return BATCH * BATCHES / served_s, BATCH * BATCHES / copied_s


def _caller(endpoints: Sequence[str], ids: Sequence[str], number: int) -> Callable[[], None]:
    """Reads and searches of one client, whose orchestrator is one of several."""
    client = MemoryClient(endpoints[number % len(endpoints)], timeout=TIMEOUT_S)
    randomness, turns = random.Random(number), itertools.cycle(ids)

    def call() -> None:
        client.get_memory(next(turns))
        client.semantic_search(text(randomness), K)

    return call


def shared(endpoints: Sequence[str], ids: Sequence[str], seconds: float) -> list[float]:
    """Calls a second, and the share of the cores that was used: of one orchestrator, of all."""
    rates: list[list[float]] = [[], [], [], []]
    for _ in range(ROUNDS):
        for place, among in enumerate((endpoints[:1], endpoints)):
            psutil.cpu_percent()
            rates[place].append(2 * throughput(partial(_caller, among, ids), CLIENTS, seconds))
            rates[2 + place].append(psutil.cpu_percent())
    return [p50(found) for found in rates]


def started(service: Service, running: ExitStack) -> Service:
    """The same, at work; it ends with the others."""
    service.start()
    running.callback(service.stop)
    return service


def grown(services: Sequence[Service], ids: Sequence[str], seconds: float) -> list[Row]:
    """What three orchestrators give beside one: with all cores, and each with its share of one."""
    endpoints = [service.endpoint for service in services]
    one, three, one_used, three_used = shared(endpoints, ids, seconds)
    # With all cores used by one there is nothing left that three could give.
    wanted = 1.0 if one_used < CORES_USED_MAX else 0.0
    rows = [
        at_least(
            f"3 orchestrators, {CLIENTS} clients, {three_used:.0f} % of the cores",
            *(three, one, wanted, "/s", f"1, {one_used:.0f} % of the cores:"),
        )
    ]
    with held([service.pid for service in services], CORE_SHARE) as can_be_held:
        if can_be_held:
            one, three, _, used = shared(endpoints, ids, seconds)
            title = f"3 orchestrators, {CORE_SHARE:.0%} of a core each, {used:.0f} % of the cores"
            rows.append(at_least(title, three, one, SCALED_MIN, "/s", "1 of them"))
    return rows


def measured(size: int, calls: int, seconds: float, folder: Path) -> list[Row]:
    with server() as on, ExitStack() as running:
        url, raw_url = filled(on, size, folder / "first")
        raw = RawStore(raw_url)
        running.callback(raw.close)
        services = [started(service_on(url, folder / "first"), running)]
        with MemoryClient(services[0].endpoint, timeout=TIMEOUT_S) as memory:
            search_us, bare_us = searched(memory, url, calls)
            rate, raw_rate = stored(memory, raw)
            ids = [found["id"] for found in memory.list_memories(limit=100)["memories"]]
        for name in ("second", "third"):
            services.append(started(service_on(url, folder / name), running))
        growth = grown(services, ids, seconds)
    return [
        at_most(f"semantic_search of {size:,}", search_us, bare_us, 1.3, "µs", "bare pgvector"),
        at_least(f"batches of {BATCH:,}", rate, raw_rate, 0.6, "/s", "COPY"),
        *growth,
    ]


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=4.0)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        found = measured(asked.size, asked.calls, asked.seconds, Path(name))
    return show("PostgreSQL", found)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
