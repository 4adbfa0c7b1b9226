"""An orchestrator process to measure: started, filled, waited for and weighed in one place."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect import MemoryClient

CONTENT = (
    "During the review on Thursday Anna and Bo agreed that the ingest service keeps its retry "
    "queue in Redis, that deployments wait for the canary, and that number {} is on call."
)
BATCH = 5_000
BATCH_WITHIN_S = 120.0
STARTED_WITHIN_S = 60.0
SETTLED_WITHIN_S = 1_800.0
SETTLED_EVERY_S = 0.25


class Service:
    """An orchestrator process for measuring."""

    def __init__(self, data: Path, embedder: str = "hashed") -> None:
        self.data = data
        self.environment = {
            name: value
            for name, value in os.environ.items()
            # Compiled modules must be kept as on any user's machine, or start-up is not measured.
            if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("RECOLLECT_")
        }
        self.environment["RECOLLECT_EMBEDDING_PROVIDER"] = embedder

    def start(self, within_s: float = STARTED_WITHIN_S) -> float:
        """Start and wait until it answers; the seconds that took."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.endpoint = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "recollect", "orchestrator"),
                *("--data", str(self.data), "--bind", self.endpoint),
            ],
            env=self.environment,
            stderr=subprocess.DEVNULL,
        )
        with MemoryClient(self.endpoint) as client:
            while time.perf_counter() - started < within_s:
                try:
                    client.ping(timeout=0.2)
                    return time.perf_counter() - started
                except Exception:
                    client.reset_circuit_breaker()
        self.stop()
        raise RuntimeError("the orchestrator did not start")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder to measure in, on the disk that BENCH_DIR names."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        yield Path(name)


@contextmanager
def serving(embedder: str = "hashed", **environment: str) -> Iterator[Service]:
    """A service on a folder of its own, until it is no longer needed."""
    with folder() as place:
        service = Service(place / "data", embedder)
        service.environment |= environment
        service.start()
        try:
            yield service
        finally:
            service.stop()


def store(client: MemoryClient, items: Iterable[dict[str, Any]], batch: int = BATCH) -> list[str]:
    """Store memories in batches, as an importer would; their ids."""
    ids: list[str] = []
    waiting = iter(items)
    while part := list(itertools.islice(waiting, batch)):
        added: Any = client.batch_add_memories(part, timeout=BATCH_WITHIN_S)
        ids += added["memory_ids"]
    return ids


def settle(client: MemoryClient) -> None:
    """Wait until all is embedded and every segment is built."""
    until = time.monotonic() + SETTLED_WITHIN_S
    while time.monotonic() < until:
        stats = client.stats()
        if not stats["embedding"]["waiting"] and not stats["index"]["building"]:
            return
        time.sleep(SETTLED_EVERY_S)
    raise RuntimeError("the index was not built in time")


def anonymous_bytes(pid: int) -> int:
    """Resident memory of a process beyond files in the page cache."""
    return _status_bytes(pid, "RssAnon:")


def resident_bytes(pid: int) -> int:
    """Resident memory of a process, with what it has mapped of files."""
    return _status_bytes(pid, "VmRSS:")


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    return 0


def replace_vectors(data: Path, vectors: Iterable[Any]) -> None:
    """Put vectors in the place of the stored ones, oldest memory first, and have the index made
    anew at the next start. The service must be stopped."""
    import apsw

    connection = apsw.Connection(str(data / "recollect.db"))
    with connection:
        nums = [num for (num,) in connection.execute("SELECT num FROM vectors ORDER BY num")]
        connection.executemany(
            "UPDATE vectors SET vector = ? WHERE num = ?",
            ((vector.tobytes(), num) for num, vector in zip(nums, vectors, strict=True)),
        )
    connection.close()
    shutil.rmtree(data / "index")


@contextmanager
def running_gateway(service: Service, **settings: str) -> Iterator[dict[str, Any]]:
    """`recollect gateway` beside a service, with settings of its own; what it says of itself."""
    named = {f"RECOLLECT_GATEWAY_{name}": value for name, value in settings.items()}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "recollect", "gateway"),
            *("--data", str(service.data), "--endpoint", service.endpoint),
        ],
        env={**service.environment, **named},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _said(service.data / "gateway.json", process.pid)
    finally:
        process.terminate()
        process.wait(STARTED_WITHIN_S)


def _said(path: Path, pid: int) -> dict[str, Any]:
    until_s = time.perf_counter() + STARTED_WITHIN_S
    while time.perf_counter() < until_s:
        try:
            said: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            time.sleep(0.01)
            continue
        if said["pid"] == pid:
            return said
    raise RuntimeError("the gateway did not start")
