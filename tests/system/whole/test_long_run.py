"""Hours are many minutes: under a steady load nothing grows that must not.

`make soak` runs it for minutes; the suite runs it short, which finds what leaks fast.
"""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from recollect import MemoryClient, RecollectError
from tests.system.whole.system import WholeSystem

SECONDS = float(os.environ.get("SOAK_S", "24"))
WORKERS = 3
PAUSE_S = 0.005
KEYS = 200
NAMESPACE = "project:soak"
SAMPLE_S = 0.25
WARM_SHARE = 0.4
"""The part of the run in which caches fill."""
RSS_GROWTH_BYTES_MAX = 24 * 1024 * 1024
WAL_BYTES_MAX = 80 * 1024 * 1024
# Small caches are full early, so that what grows later is not a cache.
SMALL = {
    "RECOLLECT_STORAGE_PAGE_CACHE_MB": "2",
    "RECOLLECT_EMBEDDING_CACHE_TEXTS_MAX": "100",
    "RECOLLECT_OPERATIONAL_EVENTS_MAX": "200",
    "RECOLLECT_INDEX_HEAD_MAX": "512",
}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[WholeSystem]:
    running = WholeSystem(tmp_path, SMALL)
    try:
        running.wait_ready()
        running.wait_healthy()
        yield running
    finally:
        running.close()


class Load:
    """Agents that overwrite, read, search and forget the same few memories."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WORKERS)]
        self.done = 0
        self.failures: list[str] = []

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        chance = random.Random(number)
        with MemoryClient(self._endpoint, agent_id=f"agent-{number}") as client:
            while not self._stopping.is_set():
                try:
                    self._step(client, chance)
                    self.done += 1
                except RecollectError as error:
                    self.failures.append(f"{error.code}: {error}")
                self._stopping.wait(PAUSE_S)

    def _step(self, client: MemoryClient, chance: random.Random) -> None:
        key = f"k{chance.randrange(KEYS)}"
        text = f"Machine {key} was seen at {chance.getrandbits(40):x}"
        kind = chance.randrange(6)
        if kind == 0:
            client.put(NAMESPACE, key, {"seen": text})
        elif kind == 1:
            client.recall(f"where was {key} seen?", k=3, namespace=NAMESPACE)
        elif kind == 2:
            client.search_memory(key, limit=3)
        elif kind == 3:
            client.push_event("soak", {"text": text})
        elif kind == 4:
            client.list_memories(namespace=NAMESPACE, limit=5)
        else:
            added = client.add_memory(text, namespace="temp:soak")
            client.get_memory(added["memory_id"])
            client.purge(added["memory_id"])


class Sample:
    """What the processes have at one moment."""

    def __init__(self, system: WholeSystem) -> None:
        self.rss: dict[str, float] = {}
        self.threads: dict[str, float] = {}
        self.files: dict[str, float] = {}
        for role, process in system.all().items():
            with process.oneshot():
                self.rss[role] = process.memory_info().rss
                self.threads[role] = process.num_threads()
                self.files[role] = process.num_fds()
        wal = system.data / "recollect.db-wal"
        self.wal_bytes = wal.stat().st_size if wal.exists() else 0


@pytest.mark.timeout(SECONDS + 180)
def test_nothing_grows_under_a_steady_load(system: WholeSystem) -> None:
    samples: list[Sample] = []
    with Load(system.endpoint) as load:
        until_s = time.monotonic() + SECONDS
        while time.monotonic() < until_s:
            samples.append(Sample(system))
            time.sleep(SAMPLE_S)
    assert not load.failures, load.failures[:5]
    assert load.done > 20 * SECONDS, "there was too little load to make anything grow"
    warm = samples[int(WARM_SHARE * len(samples)) :]
    first, last = warm[: len(warm) // 3], warm[-(len(warm) // 3) :]
    grown = growth(first, last)
    print(f"{load.done} operations in {SECONDS:.0f} s; growth of the medians: {grown}")
    for role, bytes_ in grown["rss"].items():
        assert bytes_ <= RSS_GROWTH_BYTES_MAX, f"the {role} grew by {bytes_:,} bytes: {grown}"
    for what in ("threads", "files"):
        for role, count in grown[what].items():
            assert count <= 2, f"the {role} has {count} more {what}: {grown}"
    assert max(sample.wal_bytes for sample in warm) <= WAL_BYTES_MAX
    for process in system.all().values():
        assert isinstance(process, psutil.Process) and process.is_running()


def growth(first: Sequence[Sample], last: Sequence[Sample]) -> dict[str, Any]:
    """By how much the median of each figure grew, by process."""
    return {
        what: {
            role: statistics.median(
                getattr(s, what)[role] for s in last if role in getattr(s, what)
            )
            - statistics.median(getattr(s, what)[role] for s in first if role in getattr(s, what))
            for role in getattr(first[0], what)
        }
        for what in ("rss", "threads", "files")
    }
