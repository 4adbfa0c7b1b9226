"""Changes and errors as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from recollect.cli.output import ago, bare_table, one_line, out
from recollect.protocol.records import ErrorSeen, FeedChange

SEQ_CHARS = 8


def change_line(change: FeedChange) -> Text:
    """One change on one line: number, when, what, where, of what, by whom."""
    text = Text(f"{change['seq']:>{SEQ_CHARS}}  ", "dim")
    text.append(f"{change['at'][11:19]}  ", "dim")
    text.append(one_line(change["operation"]), "bold")
    before, after = change["version_before"], change["version_after"]
    if before is not None or after is not None:
        was = "new" if before is None else str(before)
        text.append(f" {was} → {'gone' if after is None else after}", "dim")
    text.append(f"  {one_line(change['subject'])}", "cyan")
    if change["namespace"]:
        text.append(f"  {one_line(change['namespace'])}")
    who = change["agent"] or change["identity"]
    text.append(f"  {one_line(who)}", "dim")
    if change["task_id"]:
        text.append(f"  task {one_line(change['task_id'])}", "dim")
    return text


def show_errors(errors: Sequence[ErrorSeen]) -> None:
    """A table, one kind of error a row."""
    table = bare_table()
    table.add_column("last seen", no_wrap=True)
    table.add_column("times", justify="right", no_wrap=True)
    table.add_column("code", style="red", overflow="fold")
    table.add_column("source", overflow="fold")
    table.add_column("what", overflow="fold", ratio=1)
    for error in errors:
        source = Text(one_line(error["source"]))
        if error["identity"] != error["source"]:
            source.append(f"\nby {one_line(error['identity'])}", "dim")
        what = Text(one_line(error["message"]))
        around = "  ".join(f"{name}={value}" for name, value in error["context"].items())
        if around:
            what.append(f"\n{one_line(around)}", "dim")
        table.add_row(
            ago(error["last_at"]), f"{error['count']:,}", one_line(error["code"]), source, what
        )
    out.print(table)
