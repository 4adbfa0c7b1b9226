"""The stores beside each other, one row a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

KINDS = ("add", "get", "search", "filtered")
HEADINGS = (
    "store",
    *("add", "get", "search", "filtered"),
    *("adds/s", "searches/s", "filtered/s", "recall", "filtered recall", "durability"),
)


def cells(found: dict[str, Any]) -> list[str]:
    """One store as text, `p50 / p99` for latencies; `-` for what it does not offer."""
    name = f"{found['peer']} {found['version']}"
    if "failed" in found:
        return [name, f"cannot be measured: {found['failed']}", *[""] * (len(HEADINGS) - 2)]
    latencies = [_latency(found[kind]) for kind in KINDS]
    rates = [
        f"{found[kind]['per_s']:,.0f}" if found[kind] else "-"
        for kind in ("add", "search", "filtered")
    ]
    recalls = [
        f"{found[name]:.3f}" if found[name] is not None else "-"
        for name in ("search_recall", "filtered_recall")
    ]
    return [name, *latencies, *rates, *recalls, found["durability"]]


def _latency(measured: dict[str, float] | None) -> str:
    if measured is None:
        return "-"
    return f"{_ms(measured['p50_ms'])} / {_ms(measured['p99_ms'])}"


def _ms(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def sizes(found: Sequence[dict[str, Any]]) -> list[int]:
    """The sizes that were measured, in order."""
    return sorted({store["size"] for store in found})


def table(found: Sequence[dict[str, Any]]) -> None:
    """Print a table for each size."""
    for size in sizes(found):
        printed = Table(title=f"{size:,} items; p50 / p99 in ms of one client, rates of eight")
        for heading in HEADINGS:
            printed.add_column(heading, overflow="fold")
        for store in found:
            if store["size"] == size:
                printed.add_row(*cells(store))
        Console(width=180).print(printed)
