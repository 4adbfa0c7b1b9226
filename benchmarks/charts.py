"""Charts of what was measured, as SVG: text as paths, on no background, readable on light and dark.

Grey has the same contrast to white as to a dark page, and so have the colours of the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

GREY = "#7a7a7a"
# Told apart also by those who see few colours (Okabe and Ito), evened out in lightness.
COLOURS = ("#0a84d6", "#d9652b", "#12956f", "#b86aa3", "#a8811c", "#4796bc", "#8a7f78")
WIDTH, HEIGHT = 9.0, 3.6
STYLE: Any = {
    "svg.fonttype": "path",
    # The same figures make the same file.
    "svg.hashsalt": "recollect",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "legend.frameon": False,
    "savefig.transparent": True,
}

Found = dict[str, Any]
Draw = Callable[[Sequence[Any]], None]


def save(path: Path, columns: int, draw: Draw, height: float = HEIGHT) -> None:
    """Draw into a row of axes and write the file."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(1, columns, figsize=(WIDTH, height), squeeze=False)
        draw(axes[0])
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


def stores_of(found: Found, size: int) -> list[Found]:
    """The stores that could be measured at a size."""
    return [store for store in found["stores"] if store["size"] == size and "failed" not in store]


def log(axis: Any, *, fine: bool = False) -> None:
    """A logarithmic axis, with numbers as one writes them; fine ones where the range is small."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    name = axis.axis_name
    (axis.axes.set_xscale if name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
    if fine:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def colour_of(store: Found) -> str:
    """Ours stands out."""
    return COLOURS[0] if store["peer"] == "Recollect" else GREY


def name_stores(axes: Sequence[Any], stores: Sequence[Found]) -> None:
    """A line for each store in every one of the axes, named at the first."""
    for axis in axes:
        names = [store["peer"] for store in stores] if axis is axes[0] else [""] * len(stores)
        axis.set_yticks(range(len(stores)), names)
        axis.set_ylim(-0.6, len(stores) - 0.4)
        axis.grid(axis="y", visible=False)


def throughput(path: Path, found: Found, size: int) -> None:
    """Calls a second of eight clients, of each store."""
    stores = stores_of(found, size)[::-1]
    kinds = {"add": "adds", "search": "searches", "filtered": "filtered searches"}

    def draw(axes: Sequence[Any]) -> None:
        for axis, (kind, title) in zip(axes, kinds.items(), strict=True):
            log(axis.xaxis)
            for place, store in enumerate(stores):
                rate = store[kind]["per_s"] if store[kind] else 0.0
                if rate:
                    axis.barh(place, rate, color=colour_of(store))
                label = f" {rate:,.0f}" if rate else " not offered"
                axis.text(max(rate, 1), place, label, va="center")
            highest = max((store[kind]["per_s"] for store in stores if store[kind]), default=1.0)
            axis.set_xlim(1, 8 * highest)
            axis.set_title(f"{title} a second")
        name_stores(axes, stores)

    save(path, 3, draw, height=3.0)


def latency(path: Path, found: Found, size: int) -> None:
    """From p50 to p99 of each kind of call, of each store."""
    stores = stores_of(found, size)[::-1]

    def draw(axes: Sequence[Any]) -> None:
        for axis, kind in zip(axes, ("add", "get", "search", "filtered"), strict=True):
            log(axis.xaxis)
            for place, store in enumerate(stores):
                if not store[kind]:
                    continue
                p50, p99 = store[kind]["p50_ms"], store[kind]["p99_ms"]
                colour = colour_of(store)
                axis.plot([p50, p99], [place, place], color=colour, linewidth=4, alpha=0.5)
                axis.plot([p50], [place], "o", color=colour)
            axis.set_title(f"{kind}, ms")
        name_stores(axes, stores)

    save(path, 4, draw, height=3.0)


def growth(path: Path, found: Found, operations: Sequence[str]) -> None:
    """p50 and p99 of each operation by the number of memories."""
    sizes = [size for size in found["sizes"] if "left_out" not in size]
    numbers = [size["size"] for size in sizes]

    def draw(axes: Sequence[Any]) -> None:
        for axis, name in zip(axes, ("p50_ms", "p99_ms"), strict=True):
            for operation, colour in zip(operations, COLOURS, strict=False):
                values = [size[operation][name] for size in sizes]
                axis.plot(numbers, values, "o-", color=colour, label=operation)
            log(axis.xaxis)
            log(axis.yaxis)
            axis.set_xlabel("memories")
            axis.set_title(f"{name.partition('_')[0]}, ms")
        axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

    save(path, 2, draw)


def weight(path: Path, found: Found) -> None:
    """Memory and disk of each memory, and the time to ready, by the number of memories."""
    sizes = [size for size in found["sizes"] if "left_out" not in size]
    numbers = [size["size"] for size in sizes]
    empty = found["empty"]["anonymous_bytes"]

    def draw(axes: Sequence[Any]) -> None:
        memory, disk, ready = axes
        each = [max(0, size["anonymous_bytes"] - empty) / size["size"] for size in sizes]
        memory.plot(numbers, each, "o-", color=COLOURS[0])
        memory.set_title("resident bytes a memory")
        stored = [(s["database_bytes"] + s["index_bytes"]) / s["size"] for s in sizes]
        disk.plot(numbers, stored, "o-", color=COLOURS[1])
        disk.set_title("bytes on disk a memory")
        for axis in (memory, disk):
            log(axis.yaxis, fine=True)
        ready.plot(numbers, [size["ready_s"] for size in sizes], "o-", color=COLOURS[2])
        ready.set_title("ready after start, s")
        ready.set_ylim(bottom=0)
        for axis in axes:
            log(axis.xaxis)
            axis.set_xlabel("memories")

    save(path, 3, draw, height=3.0)


def recall(path: Path, found: Found) -> None:
    """Which part of what answers a question is among the first ten, by each way of asking."""
    groups = list(dict.fromkeys(entry["group"] for entry in found["sets"]))
    ways = list(dict.fromkeys(entry["way"] for entry in found["sets"]))
    at_10 = {(e["group"], e["way"]): e["recall_at_10"] for e in found["sets"]}

    def draw(axes: Sequence[Any]) -> None:
        [axis] = axes
        width = 0.8 / len(ways)
        for place, (way, colour) in enumerate(zip(ways, COLOURS, strict=False)):
            at = [group + place * width for group in range(len(groups))]
            axis.bar(at, [at_10[group, way] for group in groups], width, color=colour, label=way)
        middle = [group + 0.4 - width / 2 for group in range(len(groups))]
        axis.set_xticks(middle, [group.replace("_", " ") for group in groups], rotation=20)
        axis.set_ylim(0, 1)
        axis.set_title("recall@10")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axis.grid(axis="x", visible=False)

    save(path, 1, draw)


def soak(path: Path, found: Found) -> None:
    """Throughput, latency and memory over time, with the kills."""
    minutes = [part["at_s"] / 60 for part in found["series"]]
    kills = [kill["at_s"] / 60 for kill in found["kills"]]

    def draw(axes: Sequence[Any]) -> None:
        rate, took, memory = axes
        rate.plot(minutes, [part["per_s"] for part in found["series"]], color=COLOURS[0])
        rate.set_title("calls a second")
        rate.set_ylim(bottom=0)
        for name, colour in (("p50_ms", COLOURS[0]), ("p99_ms", COLOURS[1])):
            known = [part for part in found["series"] if name in part]
            took.plot(
                [part["at_s"] / 60 for part in known],
                [part[name] for part in known],
                color=colour,
                label=name.partition("_")[0],
            )
        log(took.yaxis)
        took.set_title("latency, ms")
        took.legend()
        roles = list(dict.fromkeys(r for sample in found["memory"] for r in sample["rss"]))
        for role, colour in zip(roles, COLOURS, strict=False):
            known = [sample for sample in found["memory"] if role in sample["rss"]]
            memory.plot(
                [sample["at_s"] / 60 for sample in known],
                [sample["rss"][role] / 1e6 for sample in known],
                color=colour,
                label=role,
            )
        memory.set_title("resident memory, MB")
        memory.set_ylim(bottom=0)
        memory.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for axis in axes:
            axis.set_xlabel("minutes")
            for kill in kills:
                axis.axvline(kill, color=GREY, linewidth=0.8, linestyle=":", alpha=0.7)

    save(path, 3, draw)
