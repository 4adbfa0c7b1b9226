"""Recollect: an orchestrator process, asked over ZeroMQ."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.peers.data import DIMENSIONS, Data, K, team_of, text_of
from benchmarks.service import Service, replace_vectors, settle, store
from recollect import MemoryClient

TIMEOUT_S = 60.0
SHOWN = ["content", "metadata"]
"""What is fetched of what was found: id, text and what it is filtered by, as with the others."""


class Session:
    def __init__(self, endpoint: str, data: Data, ids: list[str]) -> None:
        self._client = MemoryClient(endpoint, timeout=TIMEOUT_S)
        self._data, self._ids = data, ids
        self._queries = [np.array(query, dtype="<f4").tobytes() for query in data.queries]
        self._numbers: dict[str, int] = {}

    def add(self, number: int) -> None:
        self._client.add_memory(text_of(number), metadata={"team": team_of(number)})

    def get(self, number: int) -> object:
        return self._client.get_memory(self._ids[number])

    def search(self, query: int) -> list[int]:
        found = self._client.semantic_search("-", K, vector=self._queries[query], fields=SHOWN)
        return self._named(found["results"])

    def filtered(self, query: int) -> list[int]:
        team = {"metadata.team": self._data.team_asked(query)}
        found = self._client.semantic_search(
            "-", K, team, vector=self._queries[query], fields=SHOWN
        )
        return self._named(found["results"])

    def _named(self, results: Any) -> list[int]:
        if not self._numbers:
            self._numbers = {id_: number for number, id_ in enumerate(self._ids)}
        return [self._numbers.get(result["id"], -1) for result in results]


class Driver:
    durability = "fsync before the answer"
    note = "an add makes its vector with the light embedder and its words searchable"
    version = ""
    clients: Literal["processes", "threads"] = "processes"

    def open(self, folder: Path, data: Data) -> None:
        self._data = data
        self._service = Service(folder / "data")
        self._service.environment["RECOLLECT_EMBEDDING_DIMENSIONS"] = str(DIMENSIONS)
        self._service.start()

    def fill(self) -> None:
        """Stored through the service; then the vectors of the data take the place of its own, since
        it makes the vectors of memories itself."""
        with MemoryClient(self._service.endpoint, timeout=TIMEOUT_S) as client:
            self._ids = store(
                client,
                (
                    {"content": text_of(number), "metadata": {"team": team_of(number)}}
                    for number in range(self._data.size)
                ),
            )
            settle(client)
        self._service.stop()
        replace_vectors(self._service.data, self._data.stored())
        self._service.start()
        with MemoryClient(self._service.endpoint, timeout=TIMEOUT_S) as client:
            settle(client)

    def session(self) -> Session:
        return Session(self._service.endpoint, self._data, self._ids)

    def pids(self) -> list[int]:
        return [self._service.pid]

    def close(self) -> None:
        self._service.stop()
