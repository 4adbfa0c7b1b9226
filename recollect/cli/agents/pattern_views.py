"""What was learned, as people like to read it: one block a pattern."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from recollect.cli.agents.blocks import Block, show_blocks
from recollect.cli.memory_views import explain_short_ids, shows_full_ids
from recollect.cli.output import ago, bar, counted, one_line, short_id
from recollect.protocol.operations.fields import DEFAULT_NAMESPACE
from recollect.protocol.records import PatternRecord

LEARNED_OF = {"mixed": "success and failure"}


def show_patterns(patterns: Sequence[PatternRecord], *, full_ids: bool) -> None:
    """Each with what to do, how certain that is, and what it rests on."""
    full = shows_full_ids(full_ids)
    show_blocks(
        Block(pattern["trigger"], _lines(pattern), _facts(pattern, full_ids=full))
        for pattern in patterns
    )
    if not full:
        explain_short_ids()


def _lines(pattern: PatternRecord) -> list[Text]:
    evidence = f" {pattern['confidence']:.2f}  {pattern['successes']:g} for, "
    evidence += f"{pattern['failures']:g} against"
    lines = [Text.assemble(bar(pattern["confidence"]), evidence)]
    advice = pattern["recommended_context"] or [pattern["summary"]]
    return lines + [Text(one_line(sentence)) for sentence in advice]


def _facts(pattern: PatternRecord, *, full_ids: bool) -> list[str | None]:
    likeness = pattern.get("similarity")
    return [
        f"likeness {likeness:.2f}" if likeness is not None else None,
        pattern["task_type"],
        f"learned of {LEARNED_OF.get(pattern['pattern_type'], pattern['pattern_type'])}",
        f"used {counted(pattern['usage_count'], 'time')}" if pattern["usage_count"] else None,
        ago(pattern["updated_at"]),
        None if pattern["namespace"] == DEFAULT_NAMESPACE else pattern["namespace"],
        pattern["id"] if full_ids else short_id(pattern["id"]),
    ]
