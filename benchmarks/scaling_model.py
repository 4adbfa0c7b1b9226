"""What a store of a size takes: disk, memory and processors, by arithmetic over what was measured.

    python -m benchmarks.scaling_model [--dimensions 384] [--chars 136] [--searches 50]

The constants were measured on 100,000 memories that `benchmarks.postgres_store` wrote into
PostgreSQL 18 with pgvector, and for SQLite on the same store after `recollect migrate-storage`.
What the table says of other sizes is calculated; docs/scaling.md says what that leaves out.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import msgspec

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)

PAGE_BYTES = 8_192
SQLITE_PAGE_BYTES = 4_096
PAGE_HEAD_BYTES = 24
ITEM_BYTES = 4

# Bytes a memory, with texts of 136 characters in 16 words.
MEASURED_CHARS = 136
MEMORY_BYTES = 458
JOURNAL_BYTES = 205
WORDS_BYTES = 316 + 73
BTREE_BYTES = 433
SQLITE_BYTES_BUT_VECTORS = 945
# A row of `vectors` beside its numbers. With this, the rows in a page are as many as there were.
VECTOR_ROW_BYTES = 75
# The graph had 832 bytes a vector with 256 dimensions and 1,171 with 384: a line through both.
GRAPH_BYTES = 154
GRAPH_BYTES_A_DIMENSION = 2.65
TOAST_BYTES = 2_000
"""A longer row has its vector elsewhere, in parts that take about a tenth more; not measured."""

# Processor time, on a busy machine.
SEARCH_MS = 3.8
"""Of the server, for the ten nearest of 100,000."""
SEARCH_MEASURED_AT = 100_000
SEARCH_GROWTH = 1.08
"""A search read so much more of the index when that had doubled: 2,187 pages of 12,500 vectors,
2,415 of 25,000, 2,603 of 50,000, 2,754 of 100,000."""
REQUEST_MS = 1.7
"""Of the orchestrator, for such a search."""
STORING_MS = 3.3
"""Of the server, for a memory with its place in a graph of 100,000; without a graph it was 0.08."""

CELL_MEMORIES_MAX = 10_000_000
"""In one store. More make a graph that takes hours to build, and its writes have one order."""
HOT_SHARE = 0.1
"""Of the rows, what is assumed to be read so often that it should be in memory."""


class Step(msgspec.Struct, frozen=True):
    """A store of one size."""

    memories: int
    sqlite_gb: float
    disk_gb: float
    graph_gb: float
    memory_gb: float
    cells: int
    search_ms: float
    cores: float
    storing_per_s: float


def vector_bytes(dimensions: int) -> float:
    """Of a row of `vectors`: as many as fit into a page share it."""
    row = 4 * dimensions + VECTOR_ROW_BYTES
    if row > TOAST_BYTES:
        return 1.1 * row
    return PAGE_BYTES / ((PAGE_BYTES - PAGE_HEAD_BYTES) // (row + ITEM_BYTES))


def sqlite_vector_bytes(dimensions: int) -> float:
    """The same in SQLite, where a long row goes on in pages of its own."""
    row = 4 * dimensions + VECTOR_ROW_BYTES
    return SQLITE_PAGE_BYTES / max(1, SQLITE_PAGE_BYTES // row) if row < SQLITE_PAGE_BYTES else row


def graph_bytes(dimensions: int) -> float:
    """Of an entry of the index, of half precision."""
    return GRAPH_BYTES + GRAPH_BYTES_A_DIMENSION * dimensions


def rows_bytes(chars: int) -> float:
    """Of everything but the vectors; words grow with the text."""
    words = WORDS_BYTES * max(1.0, chars / MEASURED_CHARS)
    return MEMORY_BYTES + (chars - MEASURED_CHARS) + JOURNAL_BYTES + words + BTREE_BYTES


def search_ms(vectors: int) -> float:
    """Of the server's processor, for one search through an index that is in memory."""
    return float(SEARCH_MS * SEARCH_GROWTH ** math.log2(vectors / SEARCH_MEASURED_AT))


def step(memories: int, dimensions: int, chars: int, searches_per_s: float) -> Step:
    """What a store takes, or several that share the memories."""
    cells = math.ceil(memories / CELL_MEMORIES_MAX)
    rows = memories * (rows_bytes(chars) + vector_bytes(dimensions))
    graph = memories * graph_bytes(dimensions)
    sqlite = memories * (
        SQLITE_BYTES_BUT_VECTORS + chars - MEASURED_CHARS + sqlite_vector_bytes(dimensions)
    )
    ms = search_ms(memories // cells)
    return Step(
        memories=memories,
        sqlite_gb=sqlite / 1e9,
        disk_gb=(rows + graph) / 1e9,
        graph_gb=graph / 1e9,
        memory_gb=(graph + HOT_SHARE * rows) / 1e9,
        cells=cells,
        search_ms=ms,
        cores=searches_per_s * (ms + REQUEST_MS) / 1000,
        storing_per_s=cells * 1000 / STORING_MS,
    )


def table(dimensions: int, chars: int, searches_per_s: float) -> str:
    """Every size, as a table in Markdown."""
    lines = [
        "| memories | SQLite | PostgreSQL | of that the graph | memory | cells | a search | "
        f"cores for {searches_per_s:g} searches/s | stored/s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for size in SIZES:
        found = step(size, dimensions, chars, searches_per_s)
        sqlite = _gb(found.sqlite_gb) if found.cells == 1 else ""
        lines.append(
            f"| {size:,} | {sqlite} | {_gb(found.disk_gb)} | {_gb(found.graph_gb)} | "
            f"{_gb(found.memory_gb)} | {found.cells:,} | {found.search_ms:.1f} ms | "
            f"{found.cores:.1f} | {found.storing_per_s:,.0f} |"
        )
    return "\n".join(lines)


def _gb(size: float) -> str:
    if size >= 1000:
        return f"{size / 1000:.1f} TB"
    return f"{size:.1f} GB" if size >= 1 else f"{1000 * size:.0f} MB"


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--chars", type=int, default=MEASURED_CHARS)
    parser.add_argument("--searches", type=float, default=50)
    asked = parser.parse_args(arguments)
    print(table(asked.dimensions, asked.chars, asked.searches))


if __name__ == "__main__":
    main(sys.argv[1:])
