"""A context as people see it at a terminal: its text as it is, or its pieces one by one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.text import Text

from recollect.cli.facts import facts_text
from recollect.cli.memory_views import explain_short_ids, shows_full_ids
from recollect.cli.output import ago, bare_table, clean, counted, note, one_line, out, short_id
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import ContextAssembled, ContextChunk, ContextReplayed

TEXT_LINES_MAX = 3
"""Of one piece in a table; the text of the context has it whole."""


def write_context(context: str) -> None:
    """The text itself, as it goes before a model: no line of it is broken."""
    if context:
        sys.stdout.write(clean(context.removesuffix("\n")) + "\n")
        sys.stdout.flush()


def show_assembled(answer: ContextAssembled) -> None:
    """How much was given, and how to see it again."""
    if reason := answer.get("degraded"):
        note(one_line(reason), "yellow")
    if not answer["chunks"]:
        return note(one_line(answer.get("note") or "Nothing is remembered that would help."), "")
    used = f"{answer['tokens']:,} of {answer['max_tokens']:,} tokens ({answer['tokenizer']})"
    note(
        f"{counted(answer['count'], 'piece')}, {used}, "
        f"out of {counted(answer['considered'], 'memory')} that were weighed."
    )
    if answer["receipt_id"] is None:
        return note("No receipt could be stored: this context cannot be replayed.", "yellow")
    note(f"`recollect replay {answer['receipt_id']}` gives it again.")


def show_replayed(answer: ContextReplayed) -> None:
    """For whom and what it was, and what of it is no longer there."""
    note(
        f"Given to {one_line(answer['assembled_for'])} {ago(answer['assembled_at'])} "
        f"for: {one_line(answer['task_description'])}"
    )
    if not answer["complete"]:
        gone = ", ".join(answer["missing"])
        note(f"Not all of it is there for you to see; missing: {one_line(gone)}.", "yellow")


def show_pieces(chunks: Sequence[ContextChunk], *, full_ids: bool) -> None:
    """A table, one piece a row, in the order in which they are given."""
    if not chunks:
        return
    full = shows_full_ids(full_ids)
    table = bare_table()
    table.add_column("n", no_wrap=True, justify="right", style="dim")
    table.add_column("id", no_wrap=True, style="cyan")
    table.add_column("tier", no_wrap=True)
    table.add_column("piece", ratio=1, overflow="fold")
    table.add_column("trust", no_wrap=True, justify="right")
    table.add_column("tokens", no_wrap=True, justify="right")
    columns = max(20, out.width - (72 if full else 44))
    for chunk in chunks:
        memory_id = chunk["memory_id"] or "-"
        table.add_row(
            str(chunk["n"]),
            Text(one_line(memory_id if full else short_id(memory_id))),
            Text(one_line(chunk["tier"])),
            _piece(chunk, columns),
            f"{chunk['trust']:g}",
            f"{chunk['tokens']:,}",
        )
    out.print(table)
    if not full:
        explain_short_ids()


def _piece(chunk: ContextChunk, columns: int) -> Text:
    """What it says in a few lines, and below it where it comes from."""
    text = Text(one_line(chunk["text"]))
    text.truncate(columns * TEXT_LINES_MAX, overflow="ellipsis")
    version = chunk["version"]
    facts = [
        chunk["collection"],
        f"version {version}" if version is not None and version > 1 else None,
        chunk["source"],
        chunk["author"],
        ago(chunk["at"]),
        None if chunk["namespace"] == DEFAULT_NAMESPACE else chunk["namespace"],
        "cut" if chunk["truncated"] else None,
    ]
    return text.append("\n").append(facts_text(facts, columns))
