"""What a check-up finds: one line a check, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from rich.table import Table
from rich.text import Text

from recollect.cli.output import clean, out

State = Literal["ok", "warn", "fail"]
STYLES: dict[State, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Finding(NamedTuple):
    """The outcome of one check."""

    name: str
    state: State
    message: str
    advice: str = ""


def ok(name: str, message: str) -> Finding:
    return Finding(name, "ok", message)


def warn(name: str, message: str, advice: str) -> Finding:
    return Finding(name, "warn", message, advice)


def fail(name: str, message: str, advice: str) -> Finding:
    return Finding(name, "fail", message, advice)


def show_findings(findings: Iterable[Finding]) -> None:
    """A table for people."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(clean(finding.message))
        if finding.advice:
            text.append(f"\n→ {finding.advice}", "yellow" if finding.state == "warn" else "red")
        table.add_row(Text(finding.state, STYLES[finding.state]), finding.name, text)
    out.print(table)
