"""How long-term memory reads: the texts by which it is found."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.longterm.rows import ChangeRow, IncidentRow
from recollect.orchestrator.said import together
from recollect.orchestrator.validation import Validator

VALUE_CHARS_SHOWN_MAX = 500
"""Of a longer value, the text has the beginning; the whole is in its column."""


def procedure_text(check: Validator, name: str, steps: Sequence[str], description: str) -> str:
    lines = [f"How to: {name}"]
    if description:
        lines.append(description)
    lines += [f"{place}. {step}" for place, step in enumerate(steps, 1)]
    return together(check, "name, description and steps", lines)


def incident_text(check: Validator, incident: IncidentRow) -> str:
    lines = [f"Incident ({incident.severity}): {incident.title}"]
    if incident.occurred_us is not None:
        lines.append(f"When: {to_iso(incident.occurred_us)}")
    if incident.description:
        lines.append(incident.description)
    if incident.cause:
        lines.append(f"Cause: {incident.cause}")
    if incident.resolution:
        lines.append(f"Resolution: {incident.resolution}")
    return together(check, "title, description, cause and resolution", lines)


def change_text(check: Validator, change: ChangeRow) -> str:
    lines = [
        f"Configuration of {change.component}: {change.parameter} was changed "
        f"from {_shown(change.old_value)} to {_shown(change.new_value)}"
    ]
    if change.reason:
        lines.append(f"Because: {change.reason}")
    return together(check, "component, parameter, values and reason", lines)


def knowledge_text(check: Validator, title: str, content: str) -> str:
    return together(check, "title and content", [title, content])


def _shown(value: str) -> str:
    if len(value) <= VALUE_CHARS_SHOWN_MAX:
        return value
    return f"{value[:VALUE_CHARS_SHOWN_MAX]}… ({len(value):,} characters)"
