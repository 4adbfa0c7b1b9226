"""However long the summaries and however small the budget: never a token more."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.orchestrator.memories.rows import MemoryRow
from recollect.orchestrator.working.rows import Task, TaskColumns
from recollect.orchestrator.working.summaries import within
from recollect.tokens import Estimate

COUNTER = Estimate()
WORDS = st.text("abcdefghij XYZ0123456789.,\n", min_size=1, max_size=3_000)
PIECES = st.one_of(
    WORDS,
    st.text(min_size=1, max_size=200),
    st.text("日本語のテキスト漢字 ", min_size=1, max_size=500),
    st.text("🙂👩‍👩‍👧🏳️‍🌈 ", min_size=1, max_size=200),
    st.integers(1, 5_000).map(lambda length: "Donaudampfschiff" * length),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=3).map("".join)


def task(description: str, summary: str) -> Task:
    memory: dict[str, Any] = dict.fromkeys(MemoryRow.__struct_fields__)
    columns: dict[str, Any] = dict.fromkeys(TaskColumns.__struct_fields__)
    columns |= {"description": description, "summary": summary, "status": "completed"}
    columns["ended_us"] = 1
    memory |= {"key": "task/t", "namespace": "app:default"}
    return Task(MemoryRow(**memory), TaskColumns(**columns), (None, None, None))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, TEXTS.filter(str.strip)), max_size=6),
    st.integers(1, 20_000) | st.integers(1, 60),
)
@example([("d" * 100_000, "s" * 100_000)], 1)
@example([("Do it", "Done")] * 6, 20_000)
def test_summaries_never_exceed_their_budget(given: list[tuple[str, str]], budget: int) -> None:
    told = within(COUNTER, [task(*texts) for texts in given], budget)
    counted = [COUNTER.count(one["description"]) + COUNTER.count(one["summary"]) for one in told]
    assert counted == [one["tokens"] for one in told]
    assert sum(counted) <= budget
    # All but the last are whole, and in their order.
    for (description, summary), one in zip(given, told, strict=False):
        assert description.startswith(one["description"])
        assert summary.startswith(one["summary"])
        assert one["summary"] == summary or one is told[-1]
        assert one["truncated"] == ((description, summary) != (one["description"], one["summary"]))


def test_what_fits_is_told_whole() -> None:
    tasks = [task(f"Do {number}", "Done as it should be. " * 3) for number in range(3)]
    told = within(COUNTER, tasks, 1_000)
    assert [one["truncated"] for one in told] == [False] * 3


def test_the_first_that_does_not_fit_is_cut_and_the_last() -> None:
    tasks = [task("Do it", "It was done. " * count) for count in (1, 100, 1)]
    told = within(COUNTER, tasks, 60)
    assert [one["truncated"] for one in told] == [False, True]
    assert told[1]["summary"].startswith("It was done. It")


def test_a_long_description_leaves_room_for_the_summary() -> None:
    [told] = within(COUNTER, [task("Do it and do it well. " * 500, "Done.")], 40)
    assert (told["summary"], told["truncated"]) == ("Done.", True)
