"""Operational memory as people see it at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from recollect.cli.agents.working_views import show_goals
from recollect.cli.output import ago, bare_table, counted, note, one_line, out, plain
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import (
    ActiveTaskRecord,
    EventRecord,
    MetricRecord,
    SystemSnapshot,
)

VALUE_CHARS_MAX = 300
"""Of one event, metric or state; --json has it whole."""


def show_events(events: Sequence[EventRecord]) -> None:
    """A table, one event a row, the newest first."""
    table = bare_table()
    table.add_column("when", no_wrap=True)
    table.add_column("category", overflow="fold")
    table.add_column(counted(len(events), "event"), ratio=1, overflow="fold")
    table.add_column("by", overflow="fold")
    for event in events:
        category = Text(one_line(event["category"]), "red" if event["critical"] else "cyan")
        if event["critical"]:
            category.append(" critical", "bold red")
        data = Text("") if event["data"] is None else _value(event["data"])
        marks = _marks(event["namespace"])
        if event["task_id"]:
            marks.append(f"task {event['task_id']}")
        table.add_row(
            ago(event["at"]), category, _marked(data, marks), Text(one_line(event["author"]))
        )
    out.print(table)


def show_snapshot(answer: SystemSnapshot) -> None:
    """Each part that there is, below its name."""
    if reason := answer.get("degraded"):
        note(one_line(reason), "yellow")
    parts: list[tuple[str, bool, Callable[[], None]]] = [
        ("Goals", bool(goals := answer["active_goals"]), lambda: show_goals(goals, full_ids=False)),
        ("Active tasks", bool(tasks := answer["active_tasks"]), lambda: _show_active(tasks)),
        ("Metrics", bool(metrics := answer["metrics"]), lambda: _show_metrics(metrics)),
        ("Last events", bool(events := answer["latest_events"]), lambda: show_events(events)),
    ]
    there = [(name, show) for name, is_there, show in parts if is_there]
    for place, (name, show) in enumerate(there):
        out.print(Text(f"\n{name}" if place else name, "bold"))
        show()
    if not there:
        note("Nothing goes on that you may see.", "")
    counts = answer["events"]
    note(
        f"{counted(counts['kept'], 'event')} of at most {counts['kept_max']:,}, "
        f"{counts['critical']:,} critical; kept in {one_line(answer['kept_in'])}."
    )


def _show_active(tasks: Sequence[ActiveTaskRecord]) -> None:
    table = bare_table()
    table.add_column("task", overflow="fold", style="cyan")
    table.add_column("at", ratio=1, overflow="fold")
    table.add_column("by", overflow="fold")
    table.add_column("since", no_wrap=True, justify="right")
    table.add_column("changed", no_wrap=True, justify="right")
    for task in tasks:
        table.add_row(
            Text(one_line(task["task_id"])),
            _marked(_value(task["state"]), _marks(task["namespace"])),
            Text(one_line(task["author"])),
            ago(task["since"]),
            ago(task["at"]),
        )
    out.print(table)


def _show_metrics(metrics: Sequence[MetricRecord]) -> None:
    table = bare_table()
    table.add_column("metric", overflow="fold", style="cyan")
    table.add_column("value", ratio=1, overflow="fold")
    table.add_column("by", overflow="fold")
    table.add_column("when", no_wrap=True, justify="right")
    for metric in metrics:
        table.add_row(
            Text(one_line(metric["key"])),
            _marked(_value(metric["value"]), _marks(metric["namespace"])),
            Text(one_line(metric["author"])),
            ago(metric["at"]),
        )
    out.print(table)


def _value(value: object) -> Text:
    text = Text(one_line(plain(value)))
    text.truncate(VALUE_CHARS_MAX, overflow="ellipsis")
    return text


def _marks(namespace: str) -> list[str]:
    return [] if namespace == DEFAULT_NAMESPACE else [namespace]


def _marked(text: Text, marks: Sequence[str]) -> Text:
    """With what sets it apart, dim and behind it."""
    if marks:
        text.append(("  " if text else "") + one_line(" · ".join(marks)), "dim")
    return text
