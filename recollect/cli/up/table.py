"""The processes as a table that keeps itself up to date at the bottom of a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from recollect.cli.output import bare_table, in_words, size
from recollect.cli.up.supervisor import Standing

STYLES = {
    "waiting": "dim",
    "starting": "yellow",
    "ready": "green",
    "ended": "red",
    "stopping": "yellow",
    "stopped": "dim",
}


def process_table(
    standings: Sequence[Standing], now_s: float, where: Callable[[str], str | None]
) -> Table:
    """One row a process; `now_s` is by the clock of the event loop."""
    table = bare_table()
    for name in ("process", "state", "for", "pid", "memory", "restarts", ""):
        table.add_column(name)
    for standing in standings:
        memory = resident_bytes(standing.pid)
        table.add_row(
            standing.program.name,
            Text(f"● {standing.state}", STYLES[standing.state]),
            in_words(now_s - standing.since_s) if standing.since_s else "",
            str(standing.pid or ""),
            size(memory) if memory else "",
            str(standing.restarts or ""),
            Text(_remark(standing, where), "dim"),
        )
    return table


def _remark(standing: Standing, where: Callable[[str], str | None]) -> str:
    if standing.state == "ended":
        return f"{standing.remark}; it is started again"
    return where(standing.program.name) or ""


def resident_bytes(pid: int | None) -> int | None:
    """The memory that a process has; None where the system does not tell."""
    if pid is None:
        return None
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGESIZE")
