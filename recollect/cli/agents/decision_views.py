"""Decisions as people like to read them: one block each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from recollect.cli.agents.blocks import Block, show_blocks
from recollect.cli.memory_views import explain_short_ids, shows_full_ids
from recollect.cli.output import ago, note, one_line, short_id
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import DecisionRecord

MARKS = {True: ("✓ ", "green"), False: ("✗ ", "red"), None: ("· ", "dim")}
"""Of an outcome: whether the choice was right, which may not be known."""


def show_decisions(decisions: Sequence[DecisionRecord], *, full_ids: bool) -> None:
    """Each with its options, its reasons and its outcome."""
    if not decisions:
        return note("No decision fits that you may see.", "")
    full = shows_full_ids(full_ids)
    show_blocks(
        Block(decision["context"], _lines(decision), _facts(decision, full_ids=full))
        for decision in decisions
    )
    if not full:
        explain_short_ids()


def _lines(decision: DecisionRecord) -> list[Text]:
    chosen = Text.assemble(("→ ", "dim"), (one_line(decision["choice"]), "cyan"))
    others = [option for option in decision["options"] if option != decision["choice"]]
    if others:
        chosen.append(f"  rather than {one_line(', '.join(others))}", "dim")
    lines = [chosen]
    if decision["reasoning"]:
        lines.append(Text(f"because {one_line(decision['reasoning'])}"))
    if decision["outcome"] is not None:
        lines.append(Text.assemble(MARKS[decision["success"]], one_line(decision["outcome"])))
    return lines


def _facts(decision: DecisionRecord, *, full_ids: bool) -> list[str | None]:
    likeness = decision.get("similarity")
    return [
        f"likeness {likeness:.2f}" if likeness is not None else None,
        f"{decision['confidence']:.0%} sure",
        decision["decided_by"],
        ago(decision["decided_at"]),
        None if decision["namespace"] == DEFAULT_NAMESPACE else decision["namespace"],
        f"task {decision['task_id']}" if decision["task_id"] else None,
        f"goal {short_id(decision['goal_id'])}" if decision["goal_id"] else None,
        " ".join(f"#{tag}" for tag in decision["tags"]),
        decision["id"] if full_ids else short_id(decision["id"]),
        f"receipt {decision['receipt_id']}" if decision["receipt_id"] else None,
    ]
