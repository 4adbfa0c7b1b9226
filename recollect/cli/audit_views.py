"""The audit log as people see it at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from recollect.cli.output import bare_table, counted, err, note, one_line, out
from recollect.protocol.records import AuditEntry, AuditVerified

SUBJECT_CHARS_MAX = 36  # an id; a key of somebody unknown may be longer


def show_entries(entries: Sequence[AuditEntry]) -> None:
    """A table, one entry a row."""
    table = bare_table()
    table.add_column("entry", justify="right", style="dim", no_wrap=True)
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("who", overflow="fold")
    table.add_column("what", overflow="fold")
    table.add_column("where", overflow="fold", ratio=1)
    for entry in entries:
        table.add_row(
            str(entry["seq"]), _moment(entry["at"]), _who(entry), _what(entry), _where(entry)
        )
    out.print(table)


def _moment(at: str) -> str:
    return one_line(at[:19].replace("T", " "))


def _who(entry: AuditEntry) -> Text:
    text = Text(one_line(entry["identity"]))
    if entry["agent"]:
        text.append(f"\n{one_line(entry['agent'])}", "dim")
    return text


def _what(entry: AuditEntry) -> Text:
    denied = entry["outcome"] == "denied"
    text = Text(one_line(entry["operation"]), "red" if denied else "")
    if denied:
        text.append(f"\ndenied: {one_line(entry['detail'] or 'no access')}", "red")
    elif entry["detail"]:
        text.append(f"\n{one_line(entry['detail'])}", "dim")
    if entry["task_id"]:
        text.append(f"\ntask {one_line(entry['task_id'])}", "dim")
    return text


def _where(entry: AuditEntry) -> Text:
    text = Text(one_line(entry["subject"])[:SUBJECT_CHARS_MAX], "cyan")
    before, after = entry["version_before"], entry["version_after"]
    if before is not None or after is not None:
        was = "new" if before is None else str(before)
        text.append(f"  {was} → {'gone' if after is None else after}", "dim")
    if entry["namespace"]:
        text.append(f"\n{one_line(entry['namespace'])}", "dim")
    return text


def show_verified(answer: AuditVerified, *, compared: bool) -> None:
    """What a check has found, and the end of the log to keep."""
    if answer["problem_kind"] == "trimmed":
        err.print(Text(f"Not compared: {answer['problem']}.", "yellow"), soft_wrap=True)
        out.print(f"{answer['seq']}:{answer['head']}", soft_wrap=True)
        return
    if not answer["valid"]:
        text = Text.assemble(
            ("The log does not fit: ", "bold red"), one_line(answer["problem"] or ""), "."
        )
        err.print(text, soft_wrap=not err.is_terminal)
        note("Compare with a backup; entries before that one are as they were written.")
        return
    fit = "fits" if answer["entries"] == 1 else "fit"
    text = Text(f"{_entries(answer['entries'])} {fit}", "green")
    if compared:
        text.append(", and the end that was expected is among them")
    out.print(text.append("."), soft_wrap=True)
    out.print(f"{answer['seq']}:{answer['head']}", soft_wrap=True)
    if not compared:
        note("Keep that line elsewhere: --expect with it shows what happens to the log until then.")


def _entries(count: int) -> str:
    return counted(count, "entry")
