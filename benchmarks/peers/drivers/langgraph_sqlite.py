"""LangGraph's SqliteStore, in the process of its caller."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal

import pysqlite3

from benchmarks.peers.data import DIMENSIONS, Data, K, team_of, text_of

BATCH = 500
NAMESPACE = ("bench",)
QUERY = "query "


class Session:
    def __init__(self, store: Any, data: Data) -> None:
        self._store, self._data = store, data

    def add(self, number: int) -> None:
        self._store.put(NAMESPACE, str(number), value_of(number))

    def get(self, number: int) -> object:
        return self._store.get(NAMESPACE, str(number))

    def search(self, query: int) -> list[int]:
        return self._nearest(query, None)

    def filtered(self, query: int) -> list[int]:
        return self._nearest(query, {"team": self._data.team_asked(query)})

    def _nearest(self, query: int, among: dict[str, Any] | None) -> list[int]:
        found = self._store.search(NAMESPACE, query=f"{QUERY}{query}", filter=among, limit=K)
        return [int(item.key) for item in found]


def value_of(number: int) -> dict[str, Any]:
    return {"number": number, "text": text_of(number), "team": team_of(number)}


class Driver:
    durability = "fsync before the answer (synchronous=FULL)"
    note = "in the process of its caller; its threads take turns"
    version = ""
    clients: Literal["processes", "threads"] = "threads"

    def open(self, folder: Path, data: Data) -> None:
        # Its vectors are an extension of SQLite, which the sqlite3 of many Pythons cannot load.
        sys.modules["sqlite3"] = pysqlite3
        from langgraph.store.sqlite import SqliteStore

        self._data = data
        connection = pysqlite3.connect(
            folder / "store.db", check_same_thread=False, isolation_level=None
        )
        connection.execute("PRAGMA synchronous = FULL")
        self._store: Any = SqliteStore(
            connection, index={"dims": DIMENSIONS, "embed": self._embed, "text_fields": ["text"]}
        )
        self._store.setup()

    def _embed(self, texts: list[str]) -> list[list[float]]:
        """The ready vectors of texts, which say their numbers."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        if text.startswith(QUERY):
            return self._data.queries[int(text.removeprefix(QUERY))]
        return self._data.vector(int(text.removeprefix("Note ").partition(":")[0]))

    def fill(self) -> None:
        from langgraph.store.base import PutOp

        for start in range(0, self._data.size, BATCH):
            numbers = range(start, min(start + BATCH, self._data.size))
            self._store.batch([PutOp(NAMESPACE, str(n), value_of(n)) for n in numbers])

    def session(self) -> Session:
        return Session(self._store, self._data)

    def pids(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        self._store.conn.close()
