"""How a decision reads: the text by which it is found, with what came of it once that is known."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.decisions.rows import DecisionRow
from recollect.orchestrator.memories.rows import decode_json
from recollect.orchestrator.said import together
from recollect.orchestrator.validation import Validator

VERDICTS = {None: "", 0: " (it was wrong)", 1: " (it was right)"}


def decision_text(
    check: Validator, context: str, options: Sequence[str], choice: str, reasoning: str
) -> str:
    """What was decided. The situation comes first: it is what the next one is compared with."""
    lines = [f"Decision: {context}", f"Chosen: {choice}"]
    if reasoning:
        lines.append(f"Because: {reasoning}")
    if options:
        lines.append(f"Options: {'; '.join(options)}")
    return together(check, "context, choice, reasoning and options", lines)


def with_outcome(check: Validator, row: DecisionRow, outcome: str, success: int | None) -> str:
    """The same with what came of it, instead of what was said of that before."""
    text = decision_text(check, row.context, decode_json(row.options), row.choice, row.reasoning)
    return together(
        check, "the decision and its outcome", [text, f"Outcome{VERDICTS[success]}: {outcome}"]
    )
