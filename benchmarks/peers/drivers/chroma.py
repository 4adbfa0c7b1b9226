"""Chroma's server, asked over HTTP by its own client."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import chromadb
from chromadb.config import Settings

from benchmarks.peers.data import Data, K, team_of, text_of

BATCH = 1_000
STARTED_WITHIN_S = 60.0


class Session:
    def __init__(self, collection: Any, data: Data) -> None:
        self._collection, self._data = collection, data

    def add(self, number: int) -> None:
        self._collection.add(
            ids=[str(number)],
            embeddings=[self._data.vector(number)],
            documents=[text_of(number)],
            metadatas=[{"team": team_of(number)}],
        )

    def get(self, number: int) -> object:
        return self._collection.get(ids=[str(number)])

    def search(self, query: int) -> list[int]:
        return self._nearest(query)

    def filtered(self, query: int) -> list[int]:
        return self._nearest(query, where={"team": self._data.team_asked(query)})

    def _nearest(self, query: int, **where: Any) -> list[int]:
        found = self._collection.query(
            query_embeddings=[self._data.queries[query]], n_results=K, **where
        )
        return [int(id_) for id_ in found["ids"][0]]


class Driver:
    durability = "fsync with each add, as shipped"
    note = ""
    version = ""
    clients: Literal["processes", "threads"] = "processes"

    def open(self, folder: Path, data: Data) -> None:
        self._data = data
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        program = Path(sys.executable).parent / "chroma"
        self._process = subprocess.Popen(
            [
                *(str(program), "run", "--path", str(folder / "data")),
                *("--host", "127.0.0.1", "--port", str(self._port)),
            ],
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + STARTED_WITHIN_S
        while True:
            try:
                self._client().heartbeat()
                break
            except Exception:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
        self._client().create_collection(
            "bench", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def _client(self) -> Any:
        return chromadb.HttpClient(
            host="127.0.0.1", port=self._port, settings=Settings(anonymized_telemetry=False)
        )

    def fill(self) -> None:
        collection = self._client().get_collection("bench", embedding_function=None)
        for start in range(0, self._data.size, BATCH):
            numbers = range(start, min(start + BATCH, self._data.size))
            collection.add(
                ids=[str(number) for number in numbers],
                embeddings=[self._data.vector(number) for number in numbers],
                documents=[text_of(number) for number in numbers],
                metadatas=[{"team": team_of(number)} for number in numbers],
            )

    def session(self) -> Session:
        return Session(self._client().get_collection("bench", embedding_function=None), self._data)

    def pids(self) -> list[int]:
        return [self._process.pid]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
