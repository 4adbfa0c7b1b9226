"""P9: a slow or dead client hurts only itself.

A reader is stopped with a full queue of answers, or with open subscriptions, while others work.
How long those take is compared with rounds in which there is no such reader, in turns, which are
repeated until they are alike.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from recollect import MemoryClient
from tests.faults import counts
from tests.faults.ledger import Trial
from tests.faults.polling import wait_for
from tests.faults.rounds import ROUNDS_MAX, ROUNDS_MIN, alike
from tests.faults.tools import slow_readers
from tests.harness.forks import ROOT
from tests.harness.processes import OrchestratorProcess

CALLS = 200
READERS = 4
"""One after the other; each leaves what it did not take."""
GROWTH_BYTES_MAX = 60_000_000
QUEUE_LENGTH = 1_000
"""The default of network.peer_queue_max."""
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrchestratorProcess]:
    with OrchestratorProcess(tmp_path_factory.mktemp("slow") / "data") as process:
        with process.client() as client:
            items = [{"content": f"Fact number {n}"} for n in range(2 * slow_readers.PAGE)]
            client.batch_add_memories(items)
        yield process


@contextmanager
def stopped_reader(way: str, process: OrchestratorProcess, client: MemoryClient) -> Iterator[None]:
    """A process that has asked for much, and was stopped before it took it."""
    before = answered(client)
    reader = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.tools.slow_readers", way, process.endpoint],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        if way == "answers":
            wait_for(
                lambda: answered(client) >= before + QUEUE_LENGTH and at_rest(client),
                within_s=PATIENCE_S,
                what="its requests were not answered",
            )
        else:
            wait_for(
                lambda: client.stats()["requests"]["waiting"] >= slow_readers.WAYS[way],
                within_s=PATIENCE_S,
                what="it does not wait",
            )
        reader.send_signal(signal.SIGSTOP)
        yield
    finally:
        reader.kill()
        reader.wait(PATIENCE_S)


def answered(client: MemoryClient) -> int:
    return int(client.stats()["requests"]["served"].get("read_changes", 0))


def at_rest(client: MemoryClient) -> bool:
    """Whether nothing is answered any more."""
    before = answered(client)
    time.sleep(0.05)
    return answered(client) == before


def p99_s(client: MemoryClient, number: int) -> float:
    """What others notice: writes and reads, the slowest but one in a hundred."""
    took = []
    for call in range(CALLS):
        began = time.perf_counter()
        added = client.add_memory(f"Work {number}.{call}", namespace="user:others")
        client.get_memory(added["memory_id"])
        took.append(time.perf_counter() - began)
    return sorted(took)[int(0.99 * CALLS) - 1]


@pytest.mark.parametrize("way", slow_readers.WAYS)
def test_what_a_stopped_reader_does_not_take_is_bounded(
    process: OrchestratorProcess, way: str
) -> None:
    # Nobody writes meanwhile: what others store takes memory too, and is not the reader's doing.
    memory = psutil.Process(process.pid)
    with Trial("P9") as trial, process.client() as client:
        trial.case()
        before_bytes = memory.memory_info().rss
        grown = 0
        for _ in range(READERS):
            with stopped_reader(way, process, client):
                grown = max(grown, memory.memory_info().rss - before_bytes)
        trial.check(
            grown <= GROWTH_BYTES_MAX, f"{way}: the orchestrator grew by {grown / 1e6:.0f} MB"
        )


@pytest.mark.timeout(counts.timeout_s(240))
@pytest.mark.parametrize("way", slow_readers.WAYS)
def test_a_reader_that_is_stopped_hurts_only_itself(process: OrchestratorProcess, way: str) -> None:
    with Trial("P9") as trial, process.client() as client:
        trial.case()
        p99_s(client, 0)
        alone, beside = [], []
        for number in range(1, ROUNDS_MAX + 1):
            alone.append(p99_s(client, number))
            with stopped_reader(way, process, client):
                beside.append(p99_s(client, number))
            if number >= ROUNDS_MIN and alike(alone, beside):
                break
        trial.check(
            alike(alone, beside),
            f"{way}: others took {min(beside) * 1000:.1f} instead of {min(alone) * 1000:.1f} ms",
        )
        assert client.ping()["ready"]
