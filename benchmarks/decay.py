"""A run of decay over the same memories that fade, among few and among many that do not.

`python -m benchmarks.decay --sizes 10000 100000 1000000`
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.table import Row, at_most, p50, show
from recollect.config.settings import DecaySettings, EmbeddingSettings, Settings, StorageSettings
from recollect.orchestrator.access.identities import LOCAL
from recollect.orchestrator.memories.rows import COLUMNS
from recollect.orchestrator.running.lifecycle import Orchestrator
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol.envelope import PROTOCOL_VERSION, Request, decode_reply
from recollect.protocol.operation import Operation
from recollect.protocol.operations import BatchAddMemories, FadeMemories, Undo

SIZES = (10_000, 100_000, 1_000_000)
FADING = 1_000
ROUNDS = 5
FACTOR = 2.0
NAMESPACES = 10
FILL_AT_ONCE = 50_000
YEAR_US = 365 * 86_400_000_000
LONG_YEARS = 50
NEVER_US = 250_000_000_000_000_000
NUM_FROM = 1_000_000_000

# Rows that do not fade, as copies of one that does: with all indexes of theirs, which is what a
# scan would have to go through, and without vectors and words, which decay does not touch.
CHANGED = {
    "num": "n.value",
    "id": "'filler-' || n.value",
    "seq": "n.value",
    "key": "NULL",
    "namespace": f"'project:filler:n' || (n.value % {NAMESPACES})",
    "fades_us": f"{NEVER_US} + n.value",
}
FILL = f"""
WITH RECURSIVE n (value) AS (SELECT ? UNION ALL SELECT value + 1 FROM n WHERE value < ?)
INSERT INTO memories ({COLUMNS})
SELECT {", ".join(CHANGED.get(name, f"m.{name}") for name in COLUMNS.split(", "))}
FROM n, (SELECT * FROM memories ORDER BY num LIMIT 1) m
"""


class Clock:
    """A clock that is put forward by years."""

    def __init__(self) -> None:
        self._ahead_us = 0

    def now_us(self) -> int:
        return time.time_ns() // 1000 + self._ahead_us

    def advance_years(self, years: int) -> None:
        self._ahead_us += years * YEAR_US


class Store:
    """An orchestrator in this process, asked as if over the wire."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(
            storage=StorageSettings(data=str(folder)),
            embedding=EmbeddingSettings(provider="hashed"),
            decay=DecaySettings(shrink_max=1.0),
        )
        self.clock = Clock()
        self.orchestrator = Orchestrator(settings, self.clock)
        self._ids = itertools.count(1)

    async def ask(self, operation: Operation[Any]) -> Any:
        name, body = operation.spec.name, msgspec.msgpack.encode(operation)
        deadline_ms = self.clock.now_us() // 1000 + 600_000
        request = Request(
            v=PROTOCOL_VERSION, id=next(self._ids), op=name, body=body, deadline_ms=deadline_ms
        )
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        frame = msgspec.msgpack.encode(request)
        self.orchestrator.dispatcher.dispatch(frame, answered.set_result, LOCAL)
        answer = msgspec.msgpack.decode(decode_reply(await answered).body)
        assert answer["status"] == "success", answer
        return answer

    async def fill(self, size: int) -> None:
        """The memories that fade, and the others."""
        tiers = ("short", "short", "short", "medium", "long")
        await self.ask(
            BatchAddMemories(
                [
                    {
                        "content": f"Note {n} will have faded by the time that this is measured.",
                        "memory_tier": tiers[n % len(tiers)],
                        "key": f"note-{n}",
                        "namespace": f"project:bench:n{n % NAMESPACES}",
                    }
                    for n in range(FADING)
                ]
            )
        )
        for start in range(0, size, FILL_AT_ONCE):
            first, last = NUM_FROM + start, NUM_FROM + min(size, start + FILL_AT_ONCE) - 1

            def write(transaction: WriteTransaction, span: tuple[int, int] = (first, last)) -> None:
                transaction.execute(FILL, span)

            await self.orchestrator.parts.storage.write(write)

    async def run_s(self) -> float:
        """How long one run takes; it is undone afterwards."""
        self.clock.advance_years(LONG_YEARS)
        started = time.perf_counter()
        done = await self.ask(FadeMemories(limit=FADING))
        took_s = time.perf_counter() - started
        moved = done["to_medium"] + done["to_long"] + done["archived"]
        assert moved == FADING and done["examined"] == FADING, done
        await self.ask(Undo(done["run_id"]))
        return took_s


async def measure_ms(folder: Path, size: int, rounds: int) -> float:
    """The median of some runs among so many memories."""
    store = Store(folder)
    await store.orchestrator.start()
    try:
        await store.fill(size)
        await store.run_s()  # the first one finds nothing at hand
        return p50([1000 * await store.run_s() for _ in range(rounds)])
    finally:
        await store.orchestrator.stop()


def main(arguments: Sequence[str] | None = None) -> bool:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    found: dict[int, float] = {}
    for size in sorted(given.sizes):
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
            found[size] = asyncio.run(measure_ms(Path(name), size, given.rounds))
    least = min(found)
    rows: list[Row] = [
        at_most(
            f"{FADING:,} fade among {size:,}",
            took_ms,
            found[least],
            FACTOR,
            "ms",
            f"among {least:,}",
        )
        for size, took_ms in found.items()
    ]
    return show("A run of decay costs what fades, not what is stored", rows)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
