"""How everything is, as people see it at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recollect.cli.output import ago, bare_table, clean, in_words, one_line, size

STYLES = {"healthy": "green", "degraded": "yellow", "down": "bold red"}
CHANGES_SHOWN = 5


def status_view(report: Mapping[str, Any]) -> RenderableType:
    """The whole: a line, the components, the figures, the last changes."""
    parts: list[RenderableType] = [_headline(report), Text(), _components(report)]
    if report["figures"]:
        parts += [Text(), _figures(report["figures"], report)]
    if report["history"]:
        parts += [Text(), _changes(report)]
    return Group(*parts)


def _headline(report: Mapping[str, Any]) -> Text:
    state = report["state"]
    text = Text.assemble(("Recollect is ", "bold"), (state, STYLES[state]))
    if report["since"]:
        text.append(f" since {ago(report['since'])}".replace(" ago", ""), "dim")
    return text.append(f"  {clean(report['endpoint'])}", "dim")


def _components(report: Mapping[str, Any]) -> Table:
    table = bare_table()
    for name in ("component", "state", "since"):
        table.add_column(name, no_wrap=True)
    table.add_column("reasons", overflow="fold")
    for part in report["components"]:
        table.add_row(
            part["name"],
            Text(part["state"], STYLES[part["state"]]),
            ago(part["since"]) if part["since"] else "",
            Text("\n".join(one_line(reason) for reason in part["reasons"])),
        )
    return table


def _figures(figures: Mapping[str, Any], report: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 3))
    table.add_column(style="dim")
    table.add_column()
    tiers = ", ".join(f"{tier} {count:,}" for tier, count in sorted(figures["by_tier"].items()))
    rows = {
        "throughput": f"{figures['requests_per_s']:,.1f} requests/s"
        f", {figures['failed_per_s']:,.1f} failed/s",
        "latency": f"p50 {_ms(figures['p50_ms'])}, p95 {_ms(figures['p95_ms'])}",
        "memories": f"{figures['memories']:,}" + (f" ({tiers})" if tiers else ""),
        "writes waiting": f"{figures['writes_waiting']:,}, the oldest for "
        f"{figures['writer_lag_s'] * 1000:,.0f} ms",
        "disk": f"{size(figures['disk_free_bytes'])} free, database "
        f"{size(figures['database_bytes'])}",
        "jobs": _jobs(report),
        "up for": in_words(figures["uptime_s"]),
    }
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    return table


def _jobs(report: Mapping[str, Any]) -> str:
    for part in report["components"]:
        details = part["details"]
        if part["name"] == "scheduler" and "jobs" in details:
            late, failed = len(details["late"]), len(details["failed"])
            return f"{details['jobs']}, {late} late, {failed} failed at their last run"
    return ""


def _changes(report: Mapping[str, Any]) -> Table:
    table = bare_table()
    for name in ("change", "component", "from", "to"):
        table.add_column(name, no_wrap=True)
    table.add_column("reasons", overflow="fold")
    for change in report["history"][:CHANGES_SHOWN]:
        table.add_row(
            Text(ago(change["at"]), "dim"),
            change["component"],
            change["before"] or "",
            Text(change["after"], STYLES[change["after"]]),
            Text(one_line(" ".join(change["reasons"])), "dim"),
        )
    return table


def _ms(milliseconds: float | None) -> str:
    return "none yet" if milliseconds is None else f"{milliseconds:,.2f} ms"
