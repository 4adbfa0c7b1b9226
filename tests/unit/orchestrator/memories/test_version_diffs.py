"""What changed between two versions of a memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from recollect.config.settings import DecaySettings, LimitsSettings
from recollect.orchestrator.memories.drafts import Drafting
from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.memories.strength import Fading
from recollect.orchestrator.memories.version_diffs import PAIRS_MAX, changes_between, text_diff
from recollect.orchestrator.validation import Validator
from recollect.protocol.operations import AddMemory


def row(content: str = "text", **changes: Any) -> MemoryRow:
    drafting = Drafting(Validator(LimitsSettings()), Fading(DecaySettings()))
    draft = drafting.memory(AddMemory(content), 1_000_000, "me", None)
    return msgspec.structs.replace(draft, **changes)


def test_only_what_differs_is_named() -> None:
    before, after = row(tags='["a"]'), row(tags='["a","b"]', version=2, updated_us=5, trust=0.5)
    assert changes_between(before, after, 0) == {
        "tags": {"before": ["a"], "after": ["a", "b"]},
        "trust": {"before": 1.0, "after": 0.5},
    }
    assert changes_between(after, after, 0) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1.0"), ("1", "true"), ("0", "false"), ("null", None), ('{"a":[1]}', '{"a":[true]}')],
)
def test_values_that_python_takes_for_equal_are_told_apart(one: str, other: str | None) -> None:
    changed = changes_between(row(value=one), row(value=other), 0)
    # A null that was put and no value at all are shown alike.
    assert bool(changed) is (one != "null")


def test_the_text_is_compared_line_by_line() -> None:
    assert text_diff(row("a\nb\nc"), row("a\nB\nc", version=2)).splitlines() == [
        "--- version 1",
        "+++ version 2",
        "@@ -1,3 +1,3 @@",
        " a",
        "-b",
        "+B",
        " c",
    ]
    assert text_diff(row("same"), row("same")) == ""


def test_texts_of_very_many_lines_are_compared_as_a_whole() -> None:
    lines = [f"line {n}" for n in range(2_000)]
    assert len(lines) ** 2 > PAIRS_MAX
    changed = [*lines[:5], "new", *lines[7:]]
    assert text_diff(row("\n".join(lines)), row("\n".join(changed), version=2)).splitlines() == [
        "--- version 1",
        "+++ version 2",
        "@@ -6,2 +6,1 @@",
        "-line 5",
        "-line 6",
        "+new",
    ]
