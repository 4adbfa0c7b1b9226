"""The vector index beside exact search and beside the bare FAISS index inside it.

`python -m benchmarks.ann --sizes 100000,1000000` builds an index of clustered vectors for each size
and measures recall, latency and throughput without a filter and under filters, then opens the
index in a fresh process to measure start-up and memory.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.load import latencies_us
from benchmarks.table import Row, medians, show
from recollect.orchestrator.search.vectors import FaissIndex, Numbers
from recollect.orchestrator.search.vectors.ivf import coded_query

DIMENSIONS = 384
CENTRES = 2_000
SLICE_ROWS = 20_000
QUERIES = 400
K = 10
SHARES = {"no filter": 1.0, "filter of 50 %": 0.5, "filter of 10 %": 0.1, "filter of 1 %": 0.01}
CALLS = 2_000
TURNS = 10
THREADS = 8
SECONDS = 1.5
ROUNDS = 3
SETTLE_TIMEOUT_S = 1800.0
MODEL = "clustered"

Vectors = npt.NDArray[np.float32]


def clustered(rows: int, seed: int) -> Vectors:
    """Unit vectors around a fixed set of centres, some nearer to theirs than others."""
    centres = np.random.default_rng(1).normal(size=(CENTRES, DIMENSIONS))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    chance = np.random.default_rng(seed)
    spread = chance.uniform(0.5, 1.1, size=(rows, 1)) / DIMENSIONS**0.5
    around = chance.standard_normal((rows, DIMENSIONS), dtype=np.float32) * spread
    points = centres[homes(rows, seed)] + around
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    vectors: Vectors = points.astype(np.float32)
    return vectors


def homes(rows: int, seed: int) -> Numbers:
    """The centre of each of the vectors made with this seed."""
    return np.random.default_rng((seed, 7)).integers(CENTRES, size=rows)


def slices(size: int) -> Iterator[tuple[Numbers, Vectors]]:
    """The data, the same at every run, a slice at a time."""
    for start in range(0, size, SLICE_ROWS):
        nums = np.arange(start + 1, min(start + SLICE_ROWS, size) + 1, dtype=np.int64)
        yield nums, clustered(len(nums), 1000 + start)


def filters(size: int) -> dict[str, Numbers | None]:
    """The numbers that each filter allows; read-only, so that the index may know them again."""
    chance = np.random.default_rng(3).random(size)
    found: dict[str, Numbers | None] = {}
    for name, share in SHARES.items():
        allowed = np.flatnonzero(chance < share).astype(np.int64) + 1
        allowed.flags.writeable = False
        found[name] = None if share == 1.0 else allowed
    starts = range(0, size, SLICE_ROWS)
    kinds = [homes(min(SLICE_ROWS, size - start), 1000 + start) for start in starts]
    of_a_kind = np.flatnonzero(np.concatenate(kinds) < CENTRES // 20).astype(np.int64) + 1
    of_a_kind.flags.writeable = False
    # Most queries are far from all that this one allows.
    return found | {"filter of one kind, 5 %": of_a_kind}


def exact(size: int, queries: Vectors, allowed: dict[str, Numbers | None]) -> dict[str, Numbers]:
    """The true nearest of every query under every filter."""
    nothing: Any = np.empty((len(queries), 0))
    best = dict.fromkeys(allowed, (nothing, nothing))
    for nums, vectors in slices(size):
        scores = queries @ vectors.T
        for name, among in allowed.items():
            chosen = np.arange(len(nums))
            if among is not None:
                first, last = np.searchsorted(among, (nums[0], nums[-1] + 1))
                chosen = among[first:last] - nums[0]
            all_scores = np.concatenate((best[name][0], scores[:, chosen]), axis=1)
            all_nums = np.concatenate(
                (best[name][1], np.broadcast_to(nums[chosen], (len(queries), len(chosen)))), axis=1
            )
            top = np.argpartition(-all_scores, K - 1, axis=1)[:, :K]
            best[name] = (
                np.take_along_axis(all_scores, top, axis=1),
                np.take_along_axis(all_nums, top, axis=1),
            )
    return {name: found.astype(np.int64) for name, (_, found) in best.items()}


def anonymous_bytes() -> int:
    """Resident memory of this process beyond files in the page cache."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    return 0


class Peak:
    """The most anonymous memory seen while a block ran."""

    def __enter__(self) -> Peak:
        self.before = self.bytes = anonymous_bytes()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            self.bytes = max(self.bytes, anonymous_bytes())


def build(size: int, folder: Path) -> tuple[FaissIndex, float, float]:
    """A settled index; the seconds it took to load and build, and the peak of memory a vector."""
    index = FaissIndex(DIMENSIONS, folder=folder, model=MODEL)
    index.open()
    building_s = 0.0
    with Peak() as peak:
        for nums, vectors in slices(size):
            started = time.perf_counter()
            index.load(nums, nums, vectors)
            building_s += time.perf_counter() - started
        started = time.perf_counter()
        if not index.settle(SETTLE_TIMEOUT_S):
            raise RuntimeError("the index was not built in time")
        building_s += time.perf_counter() - started
    return index, building_s, (peak.bytes - peak.before) / size


def bare_search(index: FaissIndex, allowed: Numbers | None) -> Callable[[Vectors], object]:
    """A search of the FAISS index in the largest segment, with the same lists visited."""
    living = max(index._state.view.segments, key=lambda living: living.living)
    ivf, rows = living.segment.ivf, len(living.segment)
    makers: Any = faiss
    if ivf is None:
        flat = makers.IndexFlatIP(DIMENSIONS)
        flat.add(living.vectors)
        return lambda query: flat.search(query, K)
    if allowed is None:
        parameters = makers.SearchParametersIVF(nprobe=ivf.probes_for(K))
    else:
        marks = np.isin(living.nums, allowed)
        bits = np.packbits(marks, bitorder="little")
        selector = makers.IDSelectorBitmap(bits)
        probes = ivf.probes_for(K * rows / max(1, int(marks.sum())))
        parameters = makers.SearchParametersIVF(nprobe=probes, sel=selector)
    return lambda query: ivf.raw.search(query, K, params=parameters)


def latencies(call: Callable[[Vectors], object], queries: list[Vectors]) -> list[float]:
    """The microseconds of some calls."""
    turns = itertools.cycle(queries)

    def once() -> None:
        call(next(turns))

    return latencies_us(once, CALLS // TURNS, warmup=20)


def rate(call: Callable[[Vectors], object], queries: list[Vectors]) -> float:
    """Calls per second of several threads at once."""
    counts = [0] * THREADS
    until = time.perf_counter() + SECONDS

    def work(number: int) -> None:
        faiss.omp_set_num_threads(1)
        while time.perf_counter() < until:
            call(queries[(number + counts[number]) % len(queries)])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def _opened(folder: str, size: int, answer: Any) -> None:
    """In a process of its own: open, reconcile, search; the seconds and the memory of that."""
    index = FaissIndex(DIMENSIONS, folder=Path(folder), model=MODEL)
    nums = np.arange(1, size + 1, dtype=np.int64)
    before = anonymous_bytes()
    started = time.perf_counter()
    index.open()
    missing = len(index.reconcile(nums, nums))
    ready_s = time.perf_counter() - started
    for query in clustered(100, 5):
        index.search(query, K)
    answer.put((ready_s, missing, anonymous_bytes() - before))
    index.close()


def reopening(size: int, folder: Path) -> list[Row]:
    """Start-up and memory, in a fresh process."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_opened, args=(str(folder), size, answer))
    process.start()
    ready_s, missing, resident = answer.get(timeout=300)
    process.join(60)
    if missing:
        raise RuntimeError(f"{missing} vectors are missing after opening")
    return [
        _at_most(f"{size:,}: verified, open and reconciled", ready_s, 5.0, "s"),
        _at_most(
            f"{size:,}: resident beyond the page cache", resident / size, 1200.0, "bytes each"
        ),
    ]


def _at_most(name: str, measured: float, bound: float, unit: str, beside: str = "") -> Row:
    shown = f"{measured:,.2f} {unit}"
    ratio = measured / bound
    return Row(name, shown, beside, ratio, f"≤ {bound:,g} {unit}", ratio <= 1)


def searches(index: FaissIndex, size: int) -> list[Row]:
    """Recall and latency under every filter, and the throughput without one."""
    queries = clustered(QUERIES, 2)
    allowed = filters(size)
    # The bare index holds whole numbers of a byte each, and is given its queries so as well.
    coded = [coded_query(query) for query in queries]
    true = exact(size, queries, allowed)
    rows: list[Row] = []
    faiss.omp_set_num_threads(1)
    for name, among in allowed.items():
        found = [[num for num, _ in index.search(query, K, among)] for query in queries]
        hits = [len(set(f) & set(t.tolist())) for f, t in zip(found, true[name], strict=True)]
        recall = sum(hits) / (K * len(queries))
        rows.append(
            Row(
                f"{size:,}, {name}: recall@{K}",
                f"{recall:.4f}",
                "exact 1",
                recall,
                "≥ 0.99",
                recall >= 0.99,
            )
        )
        search, bare = partial(index.search, k=K, allowed=among), bare_search(index, among)
        ours_us: list[float] = []
        bare_us: list[float] = []
        # In turns, so that what else the machine does weighs on both alike.
        for _ in range(TURNS):
            ours_us += latencies(search, list(queries))
            bare_us += latencies(bare, coded)
        ours_us.sort()
        bare_us.sort()
        p50, p99, bare_p50 = ours_us[CALLS // 2], ours_us[CALLS * 99 // 100], bare_us[CALLS // 2]
        beside = f"bare FAISS {bare_p50:,.0f} µs; p99 {p99:,.0f} µs"
        bound = 1.3 * bare_p50 if size <= 100_000 and among is None else 2000.0
        rows.append(_at_most(f"{size:,}, {name}: p50", p50, bound, "µs", beside))
    bare = bare_search(index, None)
    rates = medians(
        lambda: {
            "ours": rate(partial(index.search, k=K), list(queries)),
            "bare": rate(bare, coded),
        },
        ROUNDS,
    )
    ours, bare_rate = rates["ours"], rates["bare"]
    rows.append(
        Row(
            f"{size:,}, {THREADS} threads",
            f"{ours:,.0f} /s",
            f"bare FAISS {bare_rate:,.0f} /s",
            ours / bare_rate,
            "≥ 0.6",
            ours >= 0.6 * bare_rate,
        )
    )
    return rows


def measure(size: int, folder: Path) -> list[Row]:
    """All rows of one size."""
    index, building_s, peak = build(size, folder)
    shape = ", ".join(
        f"{part['kind']} {part['vectors']:,}" for part in index.describe()["segments"]
    )
    rows = [
        Row(f"{size:,}: loaded and built", f"{building_s:,.1f} s", shape, 1.0, "shown", True),
        Row(f"{size:,}: peak while building", f"{peak:,.0f} bytes each", "", 1.0, "shown", True),
    ]
    rows += searches(index, size)
    index.close()
    return rows + reopening(size, folder)


def main(arguments: list[str]) -> bool:
    """Measure every size and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ann", description=__doc__)
    parser.add_argument("--sizes", default="100000,1000000", help="how many vectors, with commas")
    sizes = [int(size) for size in parser.parse_args(arguments).sizes.split(",")]
    rows: list[Row] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
            rows += measure(size, Path(name))
    return show(f"The vector index, {DIMENSIONS} dimensions, {CENTRES:,} clusters", rows)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
