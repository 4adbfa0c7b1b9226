"""What changed from one version of a memory to the next, to be read line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from recollect.health.dashboard import wording

COMPARED = (
    *("memory_type", "memory_tier", "value", "metadata", "tags", "importance", "parent_id"),
    *("source", "trust", "valid_from", "valid_to", "expires_at", "archived_at", "deleted_at"),
)
LINES_MAX = 400
CHARS_MAX = 40_000


class Line(NamedTuple):
    """One line: `plus`, `minus` or `same`."""

    kind: str
    text: str


def content_lines(before: str, after: str) -> list[Line]:
    """How a text changed, with some lines around; empty if it did not."""
    if before == after:
        return []
    old, new = before[:CHARS_MAX].splitlines(), after[:CHARS_MAX].splitlines()
    lines: list[Line] = []
    # The first two lines name the sides; every other begins with a mark of its own.
    for line in islice(difflib.unified_diff(old, new, lineterm="", n=2), 2, None):
        if not line.startswith("@@"):
            lines.append(Line({"+": "plus", "-": "minus"}.get(line[:1], "same"), line))
        elif lines:
            lines.append(Line("same", "…"))
        if len(lines) >= LINES_MAX:
            lines.append(Line("same", "… and more"))
            break
    return lines


def field_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """The other fields that differ: name, what it was, what it is."""
    for name in COMPARED:
        if before[name] != after[name]:
            yield wording.spoken(name), _shown(before[name]), _shown(after[name])


def _shown(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return "none"
    return wording.inline(value, 200)
