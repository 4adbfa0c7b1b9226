"""Memories as people see them at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recollect.cli.output import ago, bar, bare_table, clean, counted, note, one_line, out, short_id
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import MemoryRecord, MemoryVersion

FULL_IDS_FROM_COLUMNS = 120
CONTENT_LINES_MAX = 3
"""Of one memory in a table; `recollect get` shows it whole."""


def shows_full_ids(asked: bool) -> bool:
    """Whether ids are shown whole: if asked for, or where there is room."""
    return asked or out.width >= FULL_IDS_FROM_COLUMNS


def explain_short_ids() -> None:
    """Say that the end of an id will do, to somebody who sees ends only."""
    if out.is_terminal:
        note("An id may be given by its end, as shown here; --full-ids shows it whole.")


def show_memories(memories: Sequence[MemoryRecord], *, full_ids: bool) -> None:
    """A table, one memory a row."""
    full = shows_full_ids(full_ids)
    table = bare_table()
    table.add_column("id", no_wrap=True, style="cyan")
    table.add_column("memory", ratio=1, overflow="ellipsis")
    table.add_column("type", no_wrap=True)
    table.add_column("strength", no_wrap=True)
    table.add_column("updated", no_wrap=True, justify="right")
    for memory in memories:
        table.add_row(
            memory["id"] if full else short_id(memory["id"]),
            _summary(memory, columns=max(20, out.width - (88 if full else 60))),
            memory["memory_type"],
            Text.assemble(bar(memory["strength"]), f" {memory['memory_tier']}"),
            ago(memory["updated_at"]),
        )
    out.print(table)
    if not full:
        explain_short_ids()


def _summary(memory: MemoryRecord, *, columns: int) -> Text:
    """What a memory says in a few lines, and below it what sets it apart."""
    text = Text(one_line(memory["content"]))
    text.truncate(columns * CONTENT_LINES_MAX, overflow="ellipsis")
    marks = [] if memory["namespace"] == DEFAULT_NAMESPACE else [memory["namespace"]]
    if memory["key"]:
        marks.append(f"key {memory['key']}")
    marks.extend(f"#{tag}" for tag in memory["tags"])
    if memory["deleted_at"]:
        marks.append("deleted")
    if marks:
        text.append("\n" + one_line(" ".join(marks)), "dim")
    return text


def show_memory(memory: MemoryRecord) -> None:
    """One memory, whole."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(memory):
        facts.add_row(name, value)
    parts: list[Any] = [Text(clean(memory["content"])), "", facts]
    out.print(Panel(Group(*parts), title=Text(memory["id"], "cyan"), title_align="left"))


def _facts(memory: MemoryRecord) -> list[tuple[str, Text]]:
    """What is worth saying beside the text: names and values, without the empty ones."""
    strength = Text.assemble(bar(memory["strength"]), f" {memory['strength']:.0%}")
    strength.append(f", fades {ago(memory['fades_at'])}", "dim")
    pairs: list[tuple[str, Text | str | None]] = [
        ("type", f"{memory['memory_type']}, {memory['memory_tier']} tier"),
        ("namespace", memory["namespace"]),
        ("key", memory["key"]),
        ("tags", " ".join(f"#{tag}" for tag in memory["tags"])),
        ("importance", f"{memory['importance']:g}"),
        ("strength", strength),
        ("metadata", _json(memory["metadata"]) if memory["metadata"] else None),
        ("value", _json(memory["value"]) if memory["value"] is not None else None),
        ("part of", memory["parent_id"]),
        ("session", memory["session_id"]),
        ("source", memory["source"]),
        ("trust", f"{memory['trust']:g}" if memory["trust"] != 1 else None),
        ("written", _moment(memory["created_at"], memory["created_by"])),
        (
            "changed",
            _moment(memory["updated_at"], memory["updated_by"]) if memory["version"] > 1 else None,
        ),
        ("version", str(memory["version"])),
        ("reads", str(memory["access_count"])),
        ("valid from", memory["valid_from"]),
        ("valid to", memory["valid_to"]),
        ("expires", memory["expires_at"]),
        ("archived", memory["archived_at"]),
        ("deleted", memory["deleted_at"]),
    ]
    return [
        (name, value if isinstance(value, Text) else Text(clean(value)))
        for name, value in pairs
        if value
    ]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _moment(moment: str, who: str | None) -> Text:
    text = Text(ago(moment))
    text.append(f" ({moment[:19].replace('T', ' ')} UTC)", "dim")
    return text.append(f" by {clean(who)}") if who else text


def show_history(versions: Sequence[MemoryVersion]) -> None:
    """A table, one version a row, the newest first."""
    table = bare_table()
    table.add_column("version", justify="right")
    table.add_column("operation", no_wrap=True)
    table.add_column("when", no_wrap=True)
    table.add_column("by", no_wrap=True)
    table.add_column("memory", ratio=1)
    for entry in versions:
        table.add_row(
            str(entry["version"]),
            entry["operation"],
            ago(entry["changed_at"]),
            clean(entry["changed_by"] or "-"),
            _summary(entry["memory"], columns=max(20, out.width - 50)),
        )
    out.print(table)


def show_count(shown: int, total: int | None = None, more: str = "") -> None:
    """How many there are, and how to see the rest."""
    text = counted(shown, "memory")
    if total is not None and total > shown:
        text = f"{shown:,} of {counted(total, 'memory')}"
    note(f"{text}{'; ' + more if more else ''}")
