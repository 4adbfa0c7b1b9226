"""What was exported and imported, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from recollect.cli.output import clean, counted, size

if TYPE_CHECKING:
    from recollect.exchange.brought import Brought
    from recollect.exchange.exporting import Exported
    from recollect.exchange.importing import Imported

PROBLEMS_SHOWN = 10
NOUNS = {
    "memory": "memory",
    "relationship": "link",
    "group": "group",
    "document": "document",
    "session": "session",
    "session_event": "event",
}


def exported_text(told: Exported) -> Text:
    """What is in the file that was made."""
    parts = [
        counted(told.counts[kind], noun) for kind, noun in NOUNS.items() if told.counts.get(kind)
    ]
    text = Text.assemble(("Exported ", "bold green"), ", ".join(parts) or "nothing: it is empty")
    text.append(f".\n{counted(told.records, 'record')}, {size(told.bytes)}, ")
    text.append(f"as of change {told.header.seq:,}, in {clean(told.path)}", "dim")
    return text


def imported_text(told: Imported) -> Text:
    """What became of the records of an export."""
    text = _headline(told.dry_run, counted(told.added, "record"))
    text.append(f"{told.present:,} were there already")
    if told.completed:
        text.append(f", {told.completed:,} were completed")
    text.append(".")
    if told.unresolved:
        text.append(
            f"\n{told.unresolved:,} refer to something that was not exported, and came without it.",
            "yellow",
        )
    lines = [f"line {p.line:,}: {p.kind} {p.id}: {p.message}" for p in told.problems]
    return _with_problems(text, told.conflicts, told.refused, lines)


def brought_text(told: Brought) -> Text:
    """What became of what another program wrote."""
    added = ", ".join(f"{count:,} {kind}" for kind, count in sorted(told.added.items()) if count)
    present = ", ".join(f"{n:,} {kind}" for kind, n in sorted(told.present.items()) if n)
    text = _headline(told.dry_run, added or "nothing")
    text.append(f"{present} were there already." if present else "Nothing of it was there before.")
    text.append(f"\nFrom {told.source}, in {told.namespace}", "dim")
    lines = [f"{p.where}: {p.message}" for p in told.problems]
    return _with_problems(text, told.conflicts, told.refused, lines)


def _headline(dry_run: bool, added: str) -> Text:
    said = "Would add " if dry_run else "Added "
    return Text.assemble((said, "bold green"), f"{added}; ")


def _with_problems(text: Text, conflicts: int, refused: int, lines: Sequence[str]) -> Text:
    if not conflicts and not refused:
        return text
    text.append(f"\n{counted(conflicts, 'conflict')}, {refused:,} refused:", "yellow")
    for line in lines[:PROBLEMS_SHOWN]:
        text.append(f"\n  {clean(line)}")
    left = conflicts + refused - min(len(lines), PROBLEMS_SHOWN)
    if left > 0:
        text.append(f"\n  … and {left:,} more; --json has the first hundred", "dim")
    return text
