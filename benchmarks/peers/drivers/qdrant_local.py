"""Qdrant's client in local mode: no server, a folder, exact search in the process."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Literal

from qdrant_client import QdrantClient, models

from benchmarks.peers.data import DIMENSIONS, Data, K, team_of, text_of

BATCH = 500
NAME = "bench"


class Session:
    def __init__(self, client: Any, data: Data, lock: threading.Lock) -> None:
        self._client, self._data, self._lock = client, data, lock

    def add(self, number: int) -> None:
        with self._lock:
            self._client.upsert(NAME, [point(self._data, number)])

    def get(self, number: int) -> object:
        with self._lock:
            return self._client.retrieve(NAME, [number])

    def search(self, query: int) -> list[int]:
        return self._nearest(query, None)

    def filtered(self, query: int) -> list[int]:
        match = models.MatchValue(value=self._data.team_asked(query))
        condition = models.FieldCondition(key="team", match=match)
        return self._nearest(query, models.Filter(must=[condition]))

    def _nearest(self, query: int, among: Any) -> list[int]:
        with self._lock:
            found = self._client.query_points(
                NAME, query=self._data.queries[query], query_filter=among, limit=K
            )
        return [int(point.id) for point in found.points]


def point(data: Data, number: int) -> Any:
    payload = {"content": text_of(number), "team": team_of(number)}
    return models.PointStruct(id=number, vector=data.vector(number), payload=payload)


class Driver:
    durability = "fsync with each add, as shipped"
    note = "in the process of its caller, which takes a lock: it is not made for threads"
    version = ""
    clients: Literal["processes", "threads"] = "threads"

    def open(self, folder: Path, data: Data) -> None:
        self._data, self._lock = data, threading.Lock()
        self._client = QdrantClient(path=str(folder / "data"), force_disable_check_same_thread=True)
        self._client.create_collection(
            NAME,
            vectors_config=models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE),
        )

    def fill(self) -> None:
        for start in range(0, self._data.size, BATCH):
            numbers = range(start, min(start + BATCH, self._data.size))
            self._client.upsert(NAME, [point(self._data, number) for number in numbers])

    def session(self) -> Session:
        return Session(self._client, self._data, self._lock)

    def pids(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        self._client.close()
