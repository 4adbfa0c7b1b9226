"""mem0 with `infer=False`, over its usual local Qdrant, in the process of its caller."""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from typing import Any, Literal

from qdrant_client import QdrantClient

from benchmarks.peers.data import DIMENSIONS, Data, K, team_of, text_of

BATCH = 500
USER = "bench"
QUERY = "query "


class ReadyVectors:
    """In the place of an embedder: the vectors of texts, which say their numbers."""

    def __init__(self, data: Data) -> None:
        self._data = data

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        if text.startswith(QUERY):
            return self._data.queries[int(text.removeprefix(QUERY))]
        return self._data.vector(int(text.removeprefix("Note ").partition(":")[0]))


class Session:
    def __init__(self, memory: Any, data: Data, ids: list[str], lock: threading.Lock) -> None:
        self._memory, self._data, self._ids, self._lock = memory, data, ids, lock

    def add(self, number: int) -> None:
        team = {"team": team_of(number), "number": number}
        with self._lock:
            self._memory.add(text_of(number), user_id=USER, metadata=team, infer=False)

    def get(self, number: int) -> object:
        with self._lock:
            return self._memory.get(self._ids[number])

    def search(self, query: int) -> list[int]:
        return self._nearest(query)

    def filtered(self, query: int) -> list[int]:
        return self._nearest(query, team=self._data.team_asked(query))

    def _nearest(self, query: int, **among: Any) -> list[int]:
        with self._lock:
            found = self._memory.search(
                f"{QUERY}{query}", top_k=K, threshold=0.0, filters={"user_id": USER, **among}
            )
        return [int(result["metadata"]["number"]) for result in found["results"]]


class Driver:
    durability = "fsync with each add, as shipped"
    note = (
        "in the process of its caller, which takes a lock; filled through its vector store; "
        "leaves out what is less similar than 0"
    )
    version = ""
    clients: Literal["processes", "threads"] = "threads"

    def open(self, folder: Path, data: Data) -> None:
        self._data, self._lock = data, threading.Lock()
        self._ids: list[str] = []
        os.environ |= {
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(folder),
            # It wants a model at its start, which `infer=False` never asks.
            "OPENAI_API_KEY": "none",
        }
        from mem0 import Memory

        client = QdrantClient(path=str(folder / "qdrant"), force_disable_check_same_thread=True)
        vector_store = {"client": client, "embedding_model_dims": DIMENSIONS, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": vector_store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = ReadyVectors(data)

    def fill(self) -> None:
        for start in range(0, self._data.size, BATCH):
            numbers = range(start, min(start + BATCH, self._data.size))
            ids = [str(uuid.UUID(int=number + 1)) for number in numbers]
            self._memory.vector_store.insert(
                vectors=[self._data.vector(number) for number in numbers],
                payloads=[payload_of(number) for number in numbers],
                ids=ids,
            )
            self._ids += ids

    def session(self) -> Session:
        return Session(self._memory, self._data, self._ids, self._lock)

    def pids(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        self._memory.vector_store.client.close()


def payload_of(number: int) -> dict[str, Any]:
    """What mem0 itself would have stored with a memory."""
    return {
        "data": text_of(number),
        "hash": str(number),
        "user_id": USER,
        "team": team_of(number),
        "number": number,
        "created_at": "2026-01-01T00:00:00+00:00",
        "text_lemmatized": text_of(number).lower(),
    }
