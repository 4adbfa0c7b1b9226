"""`python -m benchmarks.page`: docs/benchmarks.md and its charts, from the kept results alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import charts, growth, results
from benchmarks.peers import tables
from benchmarks.results import Result

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
CHARTS = DOCS / "benchmarks"

HEAD = """# How fast it is, and beside what

`make bench` measures everything here and writes this page; nothing in it is written by hand. Below
each heading stands where and when its figures were taken. `make bench QUICK=1` takes minutes and
shows that everything runs, `make bench FULL=1` adds a hundred thousand items beside the other
stores, a million memories and the soak. The results are kept as JSON in `benchmarks/results`;
`python -m benchmarks.page` makes this page from them again.
"""
PEERS = """## Beside other stores

The same data for all: unit vectors of 384 dimensions in 2,000 clusters, a short text for each, and
a field by which one in fifty is chosen. Each store is installed with pinned versions into an
environment of its own and asked by its own client: latencies by one client, rates by eight, which
are processes where the store is a server and else threads of its process. Recall is the part of
the ten nearest by an exact search that is found.
"""
GROWTH = """## Growth

One store, filled by batches and asked by one client at each size; the light embedder with 384
dimensions. Memory is what the orchestrator has for itself, beyond files in the page cache, less
what it has when empty.
"""
RECALL = """## What is found

Questions about sets of memories, through the service with the local model: how much of what answers
a question is among the first results. `words` is search_memory, `meaning` semantic_search, `rank
fusion` the usual way to make one list of both.
"""
SOAK = """## A long run

Everything that `recollect up` starts, with agents that write, read, search and assemble contexts
over ZeroMQ and REST, while each process in turn is killed with SIGKILL. Dotted lines are kills.
"""
LIMITS = """## Beside the raw limits of the machine

What each operation takes beside the least that it could: an echo of the same bytes by ZeroMQ, the
same rows written to SQLite by hand, bare FAISS, the bare model.
"""


def taken(result: Result) -> str:
    """Where, when and with what: a sentence for below a heading."""
    machine, versions = result.machine, result.versions
    others = ", ".join(f"{name} {version}" for name, version in versions.items())
    note = f" Taken {result.note}." if result.note else ""
    return (
        f"*{result.at[:10]}, {machine['cores']} cores of {machine['processor']}, "
        f"{machine['memory_gb']} GB, {machine['system']}, load {machine['load_at_start']} before; "
        f"{others}.{note}*\n"
    )


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in lines)


class Picture(msgspec.Struct, frozen=True):
    """A chart, and how to draw it."""

    name: str
    title: str
    draw: Callable[..., None]
    given: tuple[Any, ...]

    @property
    def path(self) -> Path:
        return CHARTS / f"{self.name}.svg"


def picture(name: str, title: str, draw: Callable[..., None], *given: Any) -> Picture:
    return Picture(name, title, draw, given)


def peers(result: Result) -> Iterator[str | Picture]:
    found = result.found
    for size in tables.sizes(found["stores"]):
        stores = [store for store in found["stores"] if store["size"] == size]
        yield f"\n### With {size:,} items\n\n"
        headings = [
            *("store", "add ms", "get ms", "search ms", "filtered ms"),
            *("adds/s", "searches/s", "filtered/s", "recall", "filtered recall", "durability"),
        ]
        yield markdown(headings, [tables.cells(store) for store in stores])
        yield "\nLatencies are p50 / p99. "
        yield " ".join(
            f"{store['peer']}: {store['note']}."
            for store in stores
            if store.get("note") and "failed" not in store
        )
        yield "\n"
        if charts.stores_of(found, size):
            title = f"Calls a second of eight clients, {size:,} items"
            yield picture(f"throughput-{size}", title, charts.throughput, found, size)
            title = f"From p50 to p99 of one client, {size:,} items"
            yield picture(f"latency-{size}", title, charts.latency, found, size)


def grown(result: Result) -> Iterator[str | Picture]:
    found = result.found
    empty = found["empty"]["anonymous_bytes"]
    rows = []
    for size in found["sizes"]:
        if "left_out" in size:
            rows.append([f"{size['size']:,}", size["left_out"]])
            continue
        number = size["size"]
        rows.append(
            [
                f"{number:,}",
                *(
                    f"{size[name]['p50_ms']:.2f} / {size[name]['p99_ms']:.2f}"
                    for name in growth.OPERATIONS
                ),
                f"{size['ready_s']:.2f}",
                f"{size['anonymous_bytes'] / 1e6:,.0f}",
                f"{max(0, size['anonymous_bytes'] - empty) / number:,.0f}",
                f"{(size['database_bytes'] + size['index_bytes']) / 1e6:,.0f}",
                f"{size['filled_s']:,.0f}",
            ]
        )
    headings = [
        *("memories", *growth.OPERATIONS, "ready s"),
        *("memory MB", "bytes each", "disk MB", "filled in s"),
    ]
    yield "\n" + markdown(headings, rows)
    yield f"\nLatencies are p50 / p99 in ms. All of it took {found['took_s'] / 60:,.1f} minutes.\n"
    title = "Latencies by the number of memories"
    yield picture("growth", title, charts.growth, found, growth.OPERATIONS)
    yield picture("weight", "Memory, disk and start-up", charts.weight, found)


def recalled(result: Result) -> Iterator[str | Picture]:
    rows = [
        [
            *(entry["group"], str(entry["questions"]), entry["way"]),
            *(f"{entry[f'recall_at_{k}']:.3f}" for k in (5, 10, 20)),
            *(f"{entry['mrr']:.3f}", f"{entry['p50_ms']:.1f}"),
        ]
        for entry in result.found["sets"]
    ]
    headings = ["set", "questions", "asked by", "recall@5", "@10", "@20", "MRR", "p50 ms"]
    yield "\n" + markdown(headings, rows)
    yield picture("recall", "Recall@10 by set and way of asking", charts.recall, result.found)


def soaked(result: Result) -> Iterator[str | Picture]:
    found = result.found
    back = [kill["back_s"] for kill in found["kills"] if kill["back_s"] is not None]
    longest = f", the longest after {max(back):.1f} s" if back else ""
    yield (
        f"\n{found['seconds'] / 60:,.1f} minutes, {found['agents']} agents, "
        f"{found['calls']:,} calls, {len(found['kills'])} kills; "
        f"{len(back)} came back{longest}. "
        f"{found['failed']:,} calls failed while something was away. "
        f"{found['acknowledged']:,} writes were acknowledged; "
        f"{found['looked_for']:,} memories hold what they left, "
        f"and **{found['lost_count']} were lost**.\n"
    )
    yield picture("soak", "Throughput, latency and memory over time", charts.soak, found)


def limits(result: Result) -> Iterator[str | Picture]:
    headings = ["measurement", "measured", "beside", "ratio", "bound", ""]
    for section in result.found["sections"]:
        yield f"\n### {section['title']}\n\n"
        if "at" in section:
            note = f" Taken {section['note']}." if section["note"] else ""
            yield f"*{section['at'][:10]}, load {section['load_at_start']} before.{note}*\n\n"
        if "failed" in section:
            yield f"Could not be measured: {section['failed']}\n"
            continue
        rows = [
            [
                *(row["name"], row["measured"], row["beside"]),
                *(f"{row['ratio']:.2f}", row["bound"], "met" if row["met"] else "**missed**"),
            ]
            for row in section["rows"]
        ]
        yield markdown(headings, rows)


SECTIONS = {
    "peers": (PEERS, peers),
    "growth": (GROWTH, grown),
    "recall": (RECALL, recalled),
    "soak": (SOAK, soaked),
    "limits": (LIMITS, limits),
}


def parts() -> Iterator[str | Picture]:
    """The page in order; a part without results says so."""
    yield HEAD
    for program, (head, body) in SECTIONS.items():
        yield f"\n{head}\n"
        result = results.read(program)
        if result is None:
            yield "Not measured yet.\n"
            continue
        yield taken(result)
        yield from body(result)


def text() -> str:
    """The page as it should be, with its pictures by name."""
    return "".join(
        f"\n![{part.title}]({part.path.relative_to(DOCS).as_posix()})\n"
        if isinstance(part, Picture)
        else part
        for part in parts()
    )


def render() -> None:
    """Write the page and draw its charts, and no others."""
    pictures = [part for part in parts() if isinstance(part, Picture)]
    for picture in pictures:
        picture.draw(picture.path, *picture.given)
    for path in set(CHARTS.glob("*.svg")) - {picture.path for picture in pictures}:
        path.unlink()
    PAGE.write_text(text())


def main() -> bool:
    """Render, or say what is missing for it."""
    try:
        render()
    except ImportError as error:
        print(f"The page was not made: {error}. Install it with: pip install -e '.[bench]'")
        return False
    print(f"Written: {PAGE}")
    return True


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
