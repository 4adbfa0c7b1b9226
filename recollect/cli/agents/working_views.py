"""Goals, tasks and steps as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.cli.memory_views import explain_short_ids, shows_full_ids
from recollect.cli.output import (
    ago,
    bar,
    bare_table,
    clean,
    counted,
    one_line,
    out,
    plain,
    short_id,
)
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import GoalRecord, StepRecord, TaskRecord

STATUS_STYLES = {
    "in_progress": "cyan",
    "active": "cyan",
    "completed": "green",
    "blocked": "yellow",
    "failed": "red",
}
OUTPUT_CHARS_MAX = 300
"""Of one step; --json has all that is kept."""


def show_goals(goals: Sequence[GoalRecord], *, full_ids: bool) -> None:
    """A table, one goal a row."""
    full = shows_full_ids(full_ids)
    table = bare_table()
    table.add_column("id", no_wrap=True, style="cyan")
    table.add_column("goal", ratio=1, overflow="fold")
    table.add_column("priority", no_wrap=True)
    table.add_column("done", no_wrap=True, justify="right")
    table.add_column("due", no_wrap=True, justify="right")
    for goal in goals:
        marks = [] if goal["namespace"] == DEFAULT_NAMESPACE else [goal["namespace"]]
        if goal["parent_goal_id"]:
            marks.append(f"serves {short_id(goal['parent_goal_id'])}")
        marks += [f"#{tag}" for tag in goal["tags"]]
        text = Text(one_line(goal["description"]))
        if marks:
            text.append("\n" + one_line(" ".join(marks)), "dim")
        table.add_row(
            goal["id"] if full else short_id(goal["id"]),
            text,
            # How urgent it is, not how good: so in one colour.
            Text.assemble(bar(goal["priority"], "cyan"), f" {goal['priority']:g}"),
            f"{goal['progress']:.0%}",
            ago(goal["due_at"]) if goal["due_at"] else "-",
        )
    out.print(table)
    if not full:
        explain_short_ids()


def show_tasks(tasks: Sequence[TaskRecord]) -> None:
    """A table, one task a row."""
    table = bare_table()
    table.add_column("id", overflow="fold", style="cyan")
    table.add_column("task", ratio=1, overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    table.add_column("steps", no_wrap=True, justify="right")
    table.add_column("changed", no_wrap=True, justify="right")
    for task in tasks:
        text = Text(one_line(task["description"]))
        if task["summary"]:
            text.append("\n" + one_line(task["summary"]), "dim")
        if task["namespace"] != DEFAULT_NAMESPACE:
            text.append("\n" + one_line(task["namespace"]), "dim")
        table.add_row(
            Text(one_line(task["task_id"])),
            text,
            _status(task),
            Text(one_line(task["phase"])),
            f"{task['steps']:,}",
            ago(task["updated_at"]),
        )
    out.print(table)


def _status(task: TaskRecord) -> Text:
    status = one_line(task["task_status"])
    return Text(status.replace("_", " "), STATUS_STYLES.get(status, ""))


def show_task(task: TaskRecord) -> None:
    """One task, whole."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    phase = one_line(task["phase"])
    if task["next_phases"]:
        phase += f" (may go on to {one_line(', '.join(task['next_phases']))})"
    pairs: list[tuple[str, Text | str | None]] = [
        ("task", task["description"]),
        ("status", _status(task)),
        ("phase", phase),
        ("because", task["phase_reason"]),
        ("outcome", task["summary"]),
        ("type", task["task_type"]),
        ("goal", task["goal_id"]),
        ("done by", task["assigned_to"]),
        ("namespace", task["namespace"]),
        ("tags", ", ".join(task["tags"])),
        ("metadata", plain(task["metadata"]) if task["metadata"] else ""),
        ("version", str(task["version"])),
        ("steps", f"{task['steps']:,}"),
        ("saved", ago(task["created_at"])),
        ("by", task["created_by"]),
        ("begun", ago(task["started_at"]) if task["started_at"] else ""),
        ("ended", ago(task["ended_at"]) if task["ended_at"] else ""),
    ]
    for name, value in pairs:
        if value:
            facts.add_row(name, value if isinstance(value, Text) else Text(clean(value)))
    out.print(Panel(facts, title=Text(one_line(task["task_id"]), "cyan"), title_align="left"))


def show_steps(steps: Sequence[StepRecord]) -> None:
    """A table, one step a row, in their order."""
    if not steps:
        return
    table = bare_table()
    table.add_column("turn", justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("tool", overflow="fold")
    table.add_column(counted(len(steps), "step"), ratio=1, overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("when", justify="right", no_wrap=True)
    for step in steps:
        text = Text(one_line(plain(step["parameters"])) if step["parameters"] else "")
        output = Text(one_line(step["output"]), "dim")
        output.truncate(OUTPUT_CHARS_MAX, overflow="ellipsis")
        table.add_row(
            str(step["iteration"]),
            Text("✓", "green") if step["success"] else Text("✗", "red"),
            Text(one_line(step["tool_name"])),
            Text("\n").join(part for part in (text, output) if part),
            f"{step['duration_ms']:,.0f} ms",
            ago(step["at"]),
        )
    out.print(table)
