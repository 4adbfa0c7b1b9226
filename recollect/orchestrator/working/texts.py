"""How working memory reads: the texts by which it is found, and what is kept of long ones."""

from __future__ import annotations

import re
from typing import Any

from recollect.orchestrator.memories.value_texts import text_of

OUTPUT_CHARS_MAX = 20_000
"""Of what a tool gave back; of more, the beginning is kept."""
STEP_CHARS_MAX = 1_500
PARAMETERS_CHARS_MAX = 500
_SEPARATORS = re.compile(r"[\s._/-]+")


def task_text(description: str, summary: str, chars_max: int) -> str:
    """What is to be done and, once it is known, what came of it."""
    text = f"{description}\n\n{summary}" if summary else description
    return text[:chars_max]


def step_text(
    tool_name: str, parameters: dict[str, Any], output: str, success: bool, chars_max: int
) -> str:
    """A tool, what it was called with and the beginning of what came back."""
    text = tool_name
    if parameters:
        said = text_of(parameters, tool_name, chars_max=PARAMETERS_CHARS_MAX)
        text = f"{text} with {said}"
    if not success:
        text = f"{text} failed"
    if output.strip():
        text = f"{text}\n{output.strip()}"
    return text[: min(STEP_CHARS_MAX, chars_max)]


def preference_text(key: str, value: Any, chars_max: int) -> str:
    """What somebody prefers, in words."""
    name = _SEPARATORS.sub(" ", key).strip() or key
    return _said("Prefers ", name, {name: value}, chars_max)


def agent_state_text(agent_id: str, state: dict[str, Any], chars_max: int) -> str:
    """Where an agent is."""
    return _said(f"State of the agent {agent_id}: ", "empty", state, chars_max)


def persona_text(persona: str, state: dict[str, Any], chars_max: int) -> str:
    """How a persona is."""
    return _said(f"The persona {persona}: ", "empty", state, chars_max)


def _said(opening: str, otherwise: str, value: dict[str, Any], chars_max: int) -> str:
    room = max(1, chars_max - len(opening))
    return f"{opening}{text_of(value, otherwise, chars_max=room)}"[:chars_max]


def kept_output(beginning: str, chars: int) -> tuple[str, bool]:
    """What is kept of an output, of which this is the beginning; and whether that is not all."""
    if max(chars, len(beginning)) <= OUTPUT_CHARS_MAX:
        return beginning, False
    mark = f"… [truncated, {chars:,} characters in all]"
    return beginning[: OUTPUT_CHARS_MAX - len(mark)] + mark, True
