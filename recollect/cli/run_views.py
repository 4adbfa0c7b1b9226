"""Conflicts and runs as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from recollect.cli.output import ago, bare_table, counted, note, one_line, out, short_id
from recollect.protocol.records import (
    ConflictsFound,
    Consolidated,
    RunRecord,
    RunUndone,
    SourceForgotten,
    TiersMigrated,
)

KIND_STYLES = {"contradiction": "red", "duplicate": "yellow"}
STATUS_STYLES = {
    "done": "green",
    "undone": "dim",
    "failed": "red",
    "running": "yellow",
    "interrupted": "yellow",
}
DONE = {
    "created": "created",
    "archived": "archived",
    "to_working": "to working memory",
    "to_longterm": "to long-term memory",
    "summarised": "summed up",
    "forgotten": "forgotten",
    "reverted": "reverted",
    "derived": "derived",
    "revived": "revived",
    "skipped": "skipped",
}
"""What the report of a run counts, as people call it."""
ARCHIVED_SHOWN_MAX = 3
RUN_ID_CELLS = 36


def show_conflicts(answer: ConflictsFound) -> None:
    """One block a conflict: what it is about and why, and below it the memories, newest first."""
    looked = counted(answer["examined"], "memory")
    if not answer["conflicts"]:
        return note(f"Nothing repeats or contradicts anything else among {looked}.", "")
    table = bare_table()
    table.add_column("id", no_wrap=True, style="cyan")
    table.add_column("memory", ratio=1, overflow="fold")
    table.add_column("trust", no_wrap=True, justify="right")
    table.add_column("updated", no_wrap=True, justify="right")
    for place, conflict in enumerate(answer["conflicts"]):
        if place:
            table.add_row()
        head = Text(conflict["kind"], KIND_STYLES.get(conflict["kind"], ""))
        head.append(f" · {one_line(conflict['reason'])}", "dim")
        table.add_row("", head, "", "")
        for side in conflict["memories"]:
            table.add_row(
                short_id(side["memory_id"]),
                Text(one_line(side["content"])),
                f"{side['trust']:g}",
                ago(side["updated_at"]),
            )
    out.print(table)
    note(f"{counted(len(answer['conflicts']), 'conflict')} among {looked}.")
    if not answer["complete"]:
        note("Older memories were not looked at: consolidation.examined_max bounds a look.")


def show_consolidated(answer: Consolidated) -> None:
    """What became of each conflict, and how to take it back."""
    if not answer["groups"]:
        return note(f"There is nothing to settle in {answer['namespace']}.", "")
    table = bare_table()
    table.add_column("", no_wrap=True)
    table.add_column("what stays" if not answer["dry_run"] else "what would stay", ratio=1)
    table.add_column("archived", no_wrap=True, style="cyan")
    for group in answer["groups"]:
        kind = Text(group["kind"], KIND_STYLES.get(group["kind"], ""))
        if group["skipped"]:
            text = Text(one_line(group["subject"]))
            table.add_row(kind, text.append(f"\nleft: {one_line(group['skipped'])}", "dim"), "")
        else:
            table.add_row(kind, Text(one_line(group["content"])), _ids(group["archived_ids"]))
    out.print(table)
    verb = "would be " if answer["dry_run"] else ""
    done = f"{counted(answer['archived'], 'memory')} {verb}archived, {answer['created']} written"
    if answer["skipped"]:
        done += f", {counted(answer['skipped'], 'conflict')} left"
    note(f"{done}.")
    if answer["refusal"]:
        note(f"It would be refused: {one_line(answer['refusal'])}")
    _tell_undo(answer["run_id"])


def show_migrated(answer: TiersMigrated) -> None:
    """What moved on, what sums up the rest, and how to take it back."""
    if not answer["examined"] and answer["run_id"] is None:
        return note("Nothing is due to move on.", "")
    for made in answer["summaries"]:
        of = counted(len(made["source_ids"]), "memory")
        out.print(Text.assemble((f"{of}: ", "dim"), one_line(made["text"])))
    verb = "would be" if answer["dry_run"] else "are"
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column()
    for name, what in (
        ("to_working", f"of the moment {verb} in working memory"),
        ("to_longterm", f"of working memory {verb} in long-term memory"),
        ("summarised", f"{verb} archived behind a summary"),
    ):
        table.add_row(counted(answer[name], "memory"), what)  # type: ignore[literal-required]
    out.print(table)
    if answer["resumed"]:
        note("It went on with a run that had been broken off; the numbers are those of both.")
    if not answer["complete"]:
        note("More is due: the same again goes on.")
    _tell_undo(answer["run_id"])


def show_forgotten(answer: SourceForgotten) -> None:
    """How much was taken back of what a source wrote."""
    verb = "would be" if answer["dry_run"] else "are"
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column()
    for name, what in (
        ("forgotten", f"that it wrote {verb} deleted"),
        ("derived", f"that were made from those {verb} deleted"),
        ("reverted", f"of others that it changed {verb} as before"),
        ("revived", f"of others that were archived for it {verb} back"),
    ):
        table.add_row(counted(answer[name], "memory"), what)  # type: ignore[literal-required]
    out.print(table)
    _tell_undo(answer["run_id"])


def show_undone(answer: RunUndone) -> None:
    """What is back, what is gone, and what was left."""
    out.print(
        f"{counted(answer['restored'], 'memory')} as before, "
        f"{counted(answer['removed'], 'memory')} removed."
    )
    if answer["skipped"]:
        left = ", ".join(answer["skipped"][:10])
        more = len(answer["skipped"]) - 10
        note(f"Changed since and left: {left}{f' and {more} more' if more > 0 else ''}.")


def show_runs(runs: Sequence[RunRecord]) -> None:
    """A table, one run a row, the latest first."""
    if not runs:
        return note("There are no runs.", "")
    table = bare_table()
    table.add_column("run", overflow="fold", min_width=RUN_ID_CELLS)
    table.add_column("status", no_wrap=True)
    table.add_column("by", overflow="fold")
    table.add_column("begun", no_wrap=True, justify="right")
    for run in runs:
        place = "everywhere" if run["namespace"] is None else f"in {run['namespace']}"
        told = f"{run['kind']} {place}"
        if done := _done(run):
            told += f": {done}"
        table.add_row(
            # An id is there to be copied: it stands whole, on a line of its own.
            Text.assemble((run["run_id"], "cyan"), f"\n{told}"),
            Text(run["run_status"], STATUS_STYLES.get(run["run_status"], "")),
            one_line(run["started_by"] or ""),
            ago(run["started_at"]),
        )
    out.print(table)


def _done(run: RunRecord) -> str:
    """What a run did, in a few words."""
    report = run["report"]
    return ", ".join(f"{report[name]} {what}" for name, what in DONE.items() if report.get(name))


def _ids(ids: Sequence[str]) -> str:
    shown = "\n".join(map(short_id, ids[:ARCHIVED_SHOWN_MAX]))
    more = len(ids) - ARCHIVED_SHOWN_MAX
    return f"{shown}\nand {more} more" if more > 0 else shown


def _tell_undo(run_id: str | None) -> None:
    if run_id is not None:
        note(f"`recollect undo {run_id}` takes it back.")
