"""Sessions as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.cli.output import ago, bare_table, clean, counted, one_line, out, plain
from recollect.protocol.records import SessionEvent, SessionRecord

STYLES = {"created": "cyan", "active": "green", "paused": "yellow"}


def show_sessions(found: Sequence[SessionRecord]) -> None:
    """A table, one session a row."""
    table = bare_table()
    table.add_column("id", no_wrap=True)
    table.add_column("user", overflow="fold", ratio=1)
    table.add_column("status", no_wrap=True)
    table.add_column("events", justify="right", no_wrap=True)
    table.add_column("changed", justify="right", no_wrap=True)
    for session in found:
        kind = f"{one_line(session['app'])}/{one_line(session['session_type'])}"
        table.add_row(
            Text.assemble((session["id"], "cyan"), (f"\n{kind}", "dim")),
            Text(one_line(session["user_id"])),
            _status(session),
            f"{session['events']:,}",
            ago(session["updated_at"]),
        )
    out.print(table)


def _status(session: SessionRecord) -> Text:
    return Text(session["session_status"], STYLES.get(session["session_status"], "dim"))


def show_session(session: SessionRecord, state: Mapping[str, Any]) -> None:
    """One session with its state."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    pairs: list[tuple[str, Text | str]] = [
        ("user", session["user_id"]),
        ("app", session["app"]),
        ("type", session["session_type"]),
        ("status", _status(session)),
        ("events", f"{session['events']:,}"),
        ("version", str(session["version"])),
        ("metadata", plain(session["metadata"]) if session["metadata"] else ""),
        ("begun", ago(session["created_at"])),
        ("changed", ago(session["updated_at"])),
        ("by", session["created_by"] or ""),
    ]
    for name, value in pairs:
        if value:
            facts.add_row(name, value if isinstance(value, Text) else Text(clean(value)))
    parts: list[Any] = [facts]
    if state:
        values = Table.grid(padding=(0, 2))
        values.add_column(style="cyan", overflow="fold")
        values.add_column(overflow="fold")
        for key in sorted(state):
            values.add_row(Text(one_line(key)), Text(clean(plain(state[key]))))
        parts += ["", Text("state", "dim"), values]
    out.print(Panel(Group(*parts), title=Text(session["id"], "cyan"), title_align="left"))


def show_events(events: Sequence[SessionEvent]) -> None:
    """A table, one event a row, in their order."""
    if not events:
        return
    table = bare_table()
    table.add_column("event", justify="right", style="dim", no_wrap=True)
    table.add_column("when", no_wrap=True)
    table.add_column("by", overflow="fold")
    table.add_column(counted(len(events), "event"), ratio=1, overflow="fold")
    for event in events:
        table.add_row(
            str(event["position"]),
            ago(event["at"]),
            Text(one_line(event["author"] or "-")),
            Text(clean(plain(event["event"]))),
        )
    out.print(table)
