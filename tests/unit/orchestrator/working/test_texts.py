"""What is kept of outputs, and how steps read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.orchestrator.working.texts import (
    OUTPUT_CHARS_MAX,
    STEP_CHARS_MAX,
    kept_output,
    preference_text,
    step_text,
    task_text,
)


@given(st.integers(0, 60_000))
def test_an_output_is_kept_within_its_limit_and_says_so_if_it_was_cut(length: int) -> None:
    kept, truncated = kept_output("x" * length, length)
    assert truncated == (length > OUTPUT_CHARS_MAX)
    assert len(kept) == min(length, OUTPUT_CHARS_MAX)
    assert kept.endswith(f"… [truncated, {length:,} characters in all]") == truncated


def test_an_output_that_grew_by_masking_is_cut() -> None:
    kept, truncated = kept_output("x" * (OUTPUT_CHARS_MAX + 5), OUTPUT_CHARS_MAX)
    assert (len(kept), truncated) == (OUTPUT_CHARS_MAX, True)


def test_a_step_reads_as_what_was_called_and_what_came_back() -> None:
    assert step_text("ls", {}, "", True, 1_000) == "ls"
    assert step_text("ls", {"path": "/tmp"}, " a\n", True, 1_000) == "ls with path: /tmp\na"
    assert step_text("ls", {}, "no such folder", False, 1_000) == "ls failed\nno such folder"
    long = step_text("ls", {"path": "p" * 9_000}, "o" * 9_000, True, 1_000_000)
    assert len(long) == STEP_CHARS_MAX
    assert long.endswith("o")


def test_texts_stay_within_what_a_memory_holds() -> None:
    assert task_text("Do", "Done", 1_000) == "Do\n\nDone"
    assert len(task_text("d" * 90, "s" * 90, 100)) == 100
    assert len(preference_text("k" * 90, "v" * 90, 100)) == 100
    assert preference_text("...", "x", 100) == "Prefers ...: x"
