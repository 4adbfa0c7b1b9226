"""What grows with the number of memories: latencies, memory, disk and start-up.

    python -m benchmarks.growth --sizes 1000,10000,100000,1000000

One store is filled by batches and grown from size to size. At each it is stopped and started,
weighed, and asked by one client: generated texts about topics, 384 dimensions of the light
embedder, so that what is measured is the store and not a model. A size that would not be done
within `--within-s` is left out, and said so.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import results
from benchmarks.lexical import Language, Memory
from benchmarks.search import item
from benchmarks.service import (
    Service,
    anonymous_bytes,
    folder,
    resident_bytes,
    settle,
    store,
)
from benchmarks.table import Row, at_most, p50, p99, show
from recollect import MemoryClient

SIZES = "1000,10000,100000"
DIMENSIONS = 384
QUESTIONS = 400
CALLS = 300
WARMUP = 10
SECONDS = 8.0
K = 10
TOKENS = 4_000
TIMEOUT_S = 120.0
STARTED_WITHIN_S = 600.0
FACTOR = 3.0
"""How much slower an operation may be with ten times the memories. Searching by words reads the
memories that have them, which are ten times as many, but not all of them."""
GROWN_FROM = 10_000
"""Below this, what is the same for any size is most of it."""

Call = Callable[..., object]


class Growing:
    """A store that grows, and the questions to ask it."""

    def __init__(self, service: Service, largest: int) -> None:
        self.service = service
        self.size = 0
        self._language = Language(largest)
        self._memories = self._language.memories(largest)
        self._every = max(1, largest // (100 * QUESTIONS))
        self._kept: list[Memory] = []
        self._ids: list[str] = []

    def grow(self, size: int) -> float:
        """Store memories until there are so many; the seconds until all is indexed."""
        began = time.perf_counter()
        with MemoryClient(self.service.endpoint, timeout=TIMEOUT_S) as client:
            self._ids += store(client, map(item, self._more(size - self.size)))
            settle(client)
        self.size = size
        return time.perf_counter() - began

    def _more(self, count: int) -> Iterator[Memory]:
        for memory in itertools.islice(self._memories, count):
            if memory.num % self._every == 0:
                self._kept.append(memory)
            yield memory

    def asked(self) -> dict[str, Iterator[tuple[Any, ...]]]:
        """What each operation is given, without end, about another memory each time."""
        step = max(1, len(self._kept) // QUESTIONS)
        questions = [self._language.question(memory) for memory in self._kept[::step][:QUESTIONS]]
        about = itertools.cycle(questions)
        return {
            "get_memory": ((self._ids[n * 7919 % self.size],) for n in itertools.count()),
            "add_memory": ((f"{next(about)} {self.size} {n}",) for n in itertools.count()),
            "search_memory": ((question, None, K) for question in about),
            "semantic_search": ((question, K) for question in about),
            "recall": ((question, K) for question in about),
            "assemble_context": ((question, TOKENS) for question in about),
        }


def latencies_ms(call: Call, asked: Iterator[tuple[Any, ...]], count: int) -> dict[str, float]:
    """What an operation takes, bounded in count and time, after a few that are not counted."""
    for arguments in itertools.islice(asked, WARMUP):
        call(*arguments)
    samples: list[float] = []
    until = time.perf_counter() + SECONDS
    for arguments in itertools.islice(asked, count):
        began = time.perf_counter_ns()
        call(*arguments)
        samples.append((time.perf_counter_ns() - began) / 1e6)
        if time.perf_counter() > until:
            break
    return {"p50_ms": p50(samples), "p99_ms": p99(samples), "calls": len(samples)}


def bytes_in(place: Path) -> int:
    """What the files of a folder take."""
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def measure(growing: Growing, size: int, calls: int) -> dict[str, Any]:
    """Grow to a size and measure everything there."""
    service = growing.service
    filled_s = growing.grow(size)
    print(f"  stored and indexed in {filled_s:.0f} s", flush=True)
    service.stop()
    ready_s = service.start(STARTED_WITHIN_S)
    found: dict[str, Any] = {"size": size, "filled_s": filled_s, "ready_s": ready_s}
    with MemoryClient(service.endpoint, timeout=TIMEOUT_S) as client:
        for name, asked in growing.asked().items():
            found[name] = latencies_ms(getattr(client, name), asked, calls)
            print(f"  {name}: {found[name]['p50_ms']:.2f} ms", flush=True)
    database = sum(path.stat().st_size for path in service.data.glob("recollect.db*"))
    return found | {
        "anonymous_bytes": anonymous_bytes(service.pid),
        "resident_bytes": resident_bytes(service.pid),
        "database_bytes": database,
        "index_bytes": bytes_in(service.data / "index"),
    }


OPERATIONS = (
    *("add_memory", "get_memory", "search_memory", "semantic_search"),
    *("recall", "assemble_context"),
)


def rows(found: Sequence[dict[str, Any]]) -> list[Row]:
    """How each operation grows from a size to the next, beside how the store grew."""
    made = []
    for before, after in itertools.pairwise(found):
        if before["size"] < GROWN_FROM or "left_out" in after:
            continue
        factor = FACTOR ** math.log10(after["size"] / before["size"])
        for name in OPERATIONS:
            title = f"{name}, p50 with {after['size']:,}"
            beside = f"with {before['size']:,}"
            measured, limit = after[name]["p50_ms"], before[name]["p50_ms"]
            made.append(at_most(title, measured, limit, factor, "ms", beside))
    return made


def table(found: Sequence[dict[str, Any]]) -> None:
    """Print one row a size."""
    printed = Table(title="Growth; p50 / p99 in ms of one client")
    for heading in ("memories", *OPERATIONS, "ready s", "resident MB", "database MB", "filled s"):
        printed.add_column(heading, overflow="fold")
    for size in found:
        if "left_out" in size:
            printed.add_row(f"{size['size']:,}", size["left_out"])
            continue
        latencies = [f"{size[n]['p50_ms']:.2f} / {size[n]['p99_ms']:.2f}" for n in OPERATIONS]
        printed.add_row(
            f"{size['size']:,}",
            *latencies,
            f"{size['ready_s']:.2f}",
            f"{size['anonymous_bytes'] / 1e6:,.0f}",
            f"{size['database_bytes'] / 1e6:,.0f}",
            f"{size['filled_s']:,.0f}",
        )
    Console(width=170).print(printed)


def main(arguments: Sequence[str] = ()) -> bool:
    """Measure every size, print, and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help="how many memories, with commas")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of an operation at most")
    parser.add_argument("--within-s", type=float, default=3_600.0, help="bound for all sizes")
    parser.add_argument("--note", default="", help="what to say of the machine, kept with results")
    options = parser.parse_args(arguments)
    sizes = sorted(int(size) for size in options.sizes.split(","))
    began = time.monotonic()
    found: list[dict[str, Any]] = []
    with folder() as place:
        service = Service(place / "data")
        service.environment["RECOLLECT_EMBEDDING_DIMENSIONS"] = str(DIMENSIONS)
        service.start()
        empty = {"anonymous_bytes": anonymous_bytes(service.pid)}
        try:
            growing, rate = Growing(service, sizes[-1]), math.inf
            for size in sizes:
                print(f"{size:,} memories, after {time.monotonic() - began:.0f} s", flush=True)
                wanted_s = (size - growing.size) / rate
                if time.monotonic() - began + wanted_s > options.within_s:
                    why = f"would take {wanted_s:,.0f} s, past --within-s"
                    found.append({"size": size, "left_out": why})
                    break
                more = size - growing.size
                found.append(measure(growing, size, options.calls))
                rate = more / found[-1]["filled_s"]
        finally:
            service.stop()
    took_s = time.monotonic() - began
    results.keep("growth", {"sizes": found, "empty": empty, "took_s": took_s}, options.note)
    table(found)
    return show("Ten times the memories", rows(found))


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
