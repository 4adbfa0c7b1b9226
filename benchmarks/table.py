"""One row a measurement: what, how much, the limit beside it, the ratio, and whether it is met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Console
from rich.table import Table


class Row(msgspec.Struct, frozen=True):
    """A measured value beside what it is compared with."""

    name: str
    measured: str
    beside: str
    ratio: float
    bound: str
    met: bool


def at_most(name: str, measured: float, limit: float, factor: float, unit: str, beside: str) -> Row:
    """Smaller is better: measured at most factor times limit."""
    ratio = measured / limit
    return Row(
        name,
        f"{measured:,.1f} {unit}",
        f"{beside} {limit:,.1f} {unit}",
        ratio,
        f"≤ {factor:g}",
        ratio <= factor,
    )


def at_least(
    name: str, measured: float, limit: float, factor: float, unit: str, beside: str
) -> Row:
    """Larger is better: measured at least factor times limit."""
    ratio = measured / limit
    return Row(
        name,
        f"{measured:,.0f} {unit}",
        f"{beside} {limit:,.0f} {unit}",
        ratio,
        f"≥ {factor:g}",
        ratio >= factor,
    )


SHOWN: list[tuple[str, Sequence[Row]]] = []
"""Every table that this process has printed, for the program that runs all of them."""


def show(title: str, rows: Sequence[Row]) -> bool:
    """Print the table; whether every bound is met."""
    SHOWN.append((title, rows))
    table = Table(title=title)
    for heading in ("measurement", "measured", "beside", "ratio", "bound", ""):
        table.add_column(heading, overflow="fold")
    for row in rows:
        mark = "[green]met[/]" if row.met else "[red]missed[/]"
        table.add_row(row.name, row.measured, row.beside, f"{row.ratio:.2f}", row.bound, mark)
    Console(width=140).print(table)
    return all(row.met for row in rows)


def medians(measure: Callable[[], dict[str, float]], rounds: int) -> dict[str, float]:
    """The median of each value over several rounds."""
    results = [measure() for _ in range(rounds)]
    return {name: statistics.median(result[name] for result in results) for name in results[0]}


def p50(samples: Sequence[float]) -> float:
    """The median of some samples."""
    return statistics.median(samples)


def p99(samples: Sequence[float]) -> float:
    """What all but a hundredth of some samples stay below."""
    return sorted(samples)[int(len(samples) * 0.99)]
