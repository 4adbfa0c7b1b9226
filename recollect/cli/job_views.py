"""Jobs and their runs as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from recollect.cli.output import ago, bare_table, in_words, note, one_line, out, short_id
from recollect.protocol.records import JobRunRecord, JobsListed

STATUS_STYLES = {
    "done": "green",
    "failed": "red",
    "timed_out": "red",
    "lost": "yellow",
    "running": "yellow",
    "requested": "yellow",
    "skipped": "dim",
}
UNCOUNTED = ("run_id", "run_ids", "complete", "path", "reason", "seq", "step")
COUNTS_SHOWN_MAX = 6


def show_jobs(answer: JobsListed) -> None:
    """One job a row: its schedule, when it comes next, how it went last."""
    if not answer["jobs"]:
        note("No scheduler has run yet: `recollect scheduler` starts one.", "")
        return
    table = bare_table()
    table.add_column("job", no_wrap=True, style="cyan")
    table.add_column("schedule", no_wrap=True)
    table.add_column("next", no_wrap=True)
    table.add_column("last", no_wrap=True)
    table.add_column("did", ratio=1, overflow="fold")
    for job in answer["jobs"]:
        last = job["last"]
        table.add_row(
            job["name"],
            Text(job["schedule"], "" if job["enabled"] else "dim"),
            ago(job["next_at"]) if job["next_at"] else Text("when asked for", "dim"),
            Text("never", "dim") if last is None else _status(last, when=True),
            "" if last is None else _did(last),
        )
    out.print(table)
    scheduler = answer["scheduler"]
    if scheduler["alive"]:
        note(f"The scheduler {scheduler['holder']} is at work.")
    else:
        note("No scheduler is at work: `recollect scheduler` starts one.", "yellow")


def show_history(runs: Sequence[JobRunRecord]) -> None:
    """One run a row, the latest first."""
    if not runs:
        return note("Nothing has run yet.", "")
    table = bare_table()
    table.add_column("run", no_wrap=True, style="cyan")
    table.add_column("job", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("cause", no_wrap=True)
    table.add_column("took", no_wrap=True, justify="right")
    table.add_column("did", ratio=1, overflow="fold")
    for run in runs:
        table.add_row(
            short_id(run["job_run_id"]),
            run["job"] + (" (dry)" if run["dry_run"] else ""),
            _status(run, when=True),
            run["cause"],
            _took(run),
            _did(run),
        )
    out.print(table)


def show_run(run: JobRunRecord) -> None:
    """Everything about one run, and how to take it back."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    table.add_row("run", Text(run["job_run_id"], "cyan"))
    table.add_row("job", run["job"] + (", dry" if run["dry_run"] else ""))
    table.add_row("status", _status(run))
    table.add_row("cause", _cause(run))
    if run["started_at"]:
        table.add_row("begun", ago(run["started_at"]))
    if run["duration_s"] is not None:
        table.add_row("took", _took(run))
    if run["holder"]:
        table.add_row("by", run["holder"])
    shown = run["counts"] or run["progress"]
    for name, value in shown.items():
        if name not in ("run_ids", "run_id", "step"):
            table.add_row(one_line(name.replace("_", " ")), one_line(f"{value}"))
    if run["error"]:
        table.add_row("why", Text(one_line(run["error"]), "red" if _bad(run) else ""))
    out.print(table)
    for undoable in run["counts"].get("run_ids", []):
        note(f"`recollect undo {one_line(str(undoable))}` takes it back.")


def progress_text(run: JobRunRecord) -> str:
    """How far a run is, on one line."""
    counted = _counted(run["progress"])
    where = run["progress"].get("at")
    parts = [f"{run['job']} is at work", counted, one_line(str(where)) if where else ""]
    return ", ".join(part for part in parts if part) + " …"


def _status(run: JobRunRecord, *, when: bool = False) -> Text:
    status = run["run_status"]
    text = Text(status.replace("_", " "), STATUS_STYLES.get(status, ""))
    moment = run["ended_at"] or run["started_at"] or run["requested_at"]
    return text.append(f" {ago(moment)}", "dim") if when else text


def _cause(run: JobRunRecord) -> str:
    if run["cause"] == "request":
        return f"asked for by {one_line(run['requested_by'] or 'somebody')}"
    due = f" of {run['scheduled_at']}" if run["scheduled_at"] else ""
    return f"its schedule{due}" + (", missed" if run["cause"] == "missed" else "")


def _took(run: JobRunRecord) -> str:
    seconds = run["duration_s"]
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds < 60 else in_words(seconds)


def _did(run: JobRunRecord) -> Text:
    if run["error"] and _bad(run):
        return Text(one_line(run["error"]), "red")
    if run["run_status"] == "skipped":
        return Text(one_line(run["error"] or ""), "dim")
    return Text(_counted(run["counts"] or run["progress"]))


def _bad(run: JobRunRecord) -> bool:
    return run["run_status"] in ("failed", "timed_out", "lost")


def _counted(counts: Mapping[str, Any]) -> str:
    """The numbers that are not zero, in words."""
    parts = [
        f"{value:,} {name.replace('_', ' ')}"
        for name, value in counts.items()
        if name not in UNCOUNTED and isinstance(value, int) and value
    ]
    return one_line(", ".join(parts[:COUNTS_SHOWN_MAX]))
