"""What changed between two versions of a memory, field by field and line by line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from recollect.orchestrator.memories.rows import MemoryRow, record_of
from recollect.protocol.records import FieldChange

COMPARED = (
    "memory_type",
    "memory_tier",
    "content",
    "value",
    "metadata",
    "tags",
    "importance",
    "parent_id",
    "source",
    "trust",
    "valid_from",
    "valid_to",
    "expires_at",
    "archived_at",
    "deleted_at",
)
PAIRS_MAX = 1_000_000
"""Of lines to compare; beyond that what differs is shown as taken out and put in as a whole."""


def changes_between(before: MemoryRow, after: MemoryRow, now_us: int) -> dict[str, FieldChange]:
    """The fields that differ, as callers see them."""
    was, is_now = record_of(before, now_us), record_of(after, now_us)
    return {
        name: {"before": was[name], "after": is_now[name]}  # type: ignore[literal-required]
        for name in COMPARED
        if not _same(was[name], is_now[name])  # type: ignore[literal-required]
    }


def _same(before: object, after: object) -> bool:
    """Whether two JSON values are the same; to Python, 1 and 1.0 and true are all equal."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[k], after[k]) for k in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return before == after


def text_diff(before: MemoryRow, after: MemoryRow) -> str:
    """How the content changed, as a unified diff; empty if it did not."""
    if before.content == after.content:
        return ""
    old, new = before.content.splitlines(), after.content.splitlines()
    names = (f"version {before.version}", f"version {after.version}")
    if len(old) * len(new) <= PAIRS_MAX:
        lines: Iterator[str] = difflib.unified_diff(old, new, *names, lineterm="")
    else:
        lines = _whole(old, new, *names)
    return "\n".join(lines)


def _whole(old: list[str], new: list[str], old_name: str, new_name: str) -> Iterator[str]:
    """A diff with one hunk: all between the first and the last line that differ."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    taken, put = old[head : len(old) - tail], new[head : len(new) - tail]
    yield f"--- {old_name}"
    yield f"+++ {new_name}"
    yield f"@@ -{head + 1},{len(taken)} +{head + 1},{len(put)} @@"
    yield from (f"-{line}" for line in taken)
    yield from (f"+{line}" for line in put)
