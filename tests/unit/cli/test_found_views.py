"""What was found, as it stands on the screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from rich.console import Console

from recollect.cli import found_views, memory_views
from recollect.cli.found_views import show_degraded, show_found
from recollect.protocol.records import FoundMemory, MemoriesFound

NOW = datetime.now(UTC)


def memory(number: int, content: str, **fields: Any) -> Any:
    told = (NOW - timedelta(hours=3)).isoformat()
    return {
        "id": f"00000000-0000-7000-8000-{number:012d}",
        "namespace": "app:default",
        "key": None,
        "memory_type": "general",
        "content": content,
        "metadata": {},
        "tags": [],
        "parent_id": None,
        "created_by": "cli",
        "valid_from": None,
        "created_at": told,
        "updated_at": told,
        "score": 1.0,
        **fields,
    }


def answer(*results: FoundMemory, **fields: Any) -> MemoriesFound:
    whole: Any = {
        "status": "success",
        "results": list(results),
        "count": len(results),
        "cursor": None,
    }
    whole |= fields
    return cast(MemoriesFound, whole)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A screen of 80 columns that keeps what it shows, styles included."""
    console = Console(
        width=80, highlight=False, emoji=False, force_terminal=True, color_system=None, record=True
    )
    monkeypatch.setattr(found_views, "out", console)
    monkeypatch.setattr(memory_views, "out", console)
    return console


def shown(screen: Console) -> str:
    return screen.export_text()


def test_a_result_is_a_block_with_rank_score_text_and_facts(screen: Console) -> None:
    show_found(
        answer(
            memory(
                12345678,
                "The build is green.",
                created_by="Anna",
                namespace="project:site",
                memory_type="semantic",
                tags=["ci"],
                score=0.83,
            )
        ),
        "How is the build?",
        full_ids=False,
    )
    first, second = shown(screen).rstrip().splitlines()
    assert first.rstrip() == " 1 ■■■■■  0.83  The build is green."
    assert second.split() == [
        *("Anna", "·", "3", "hours", "ago", "·", "project:site", "·", "semantic", "·"),
        *("#ci", "·", "12345678"),
    ]


def test_bars_compare_the_scores_with_the_best(screen: Console) -> None:
    show_found(
        answer(memory(1, "a", score=4.0), memory(2, "b", score=2.4), memory(3, "c", score=0.001)),
        "x",
        full_ids=True,
    )
    text = shown(screen)
    assert " 1 ■■■■■  4.00  a" in text
    assert " 2 ■■■··  2.40  b" in text
    assert " 3 ■···· <0.01  c" in text
    assert "00000000-0000-7000-8000-000000000003" in text


def test_the_words_asked_for_are_bold(screen: Console) -> None:
    show_found(answer(memory(1, "They migrated at night.")), "migration", full_ids=False)
    assert "\x1b[1mmigrated\x1b[0m" in screen.export_text(styles=True)


def test_a_long_text_keeps_to_the_width_and_a_few_lines(screen: Console) -> None:
    content = f"{'Filler words. ' * 100}The secret is 42. {'More filler. ' * 100}"
    show_found(answer(memory(1, content)), "secret", full_ids=False)
    text = shown(screen)
    lines = text.rstrip().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert len(lines) <= found_views.TEXT_LINES_MAX + 1
    assert "The secret is 42." in " ".join(text.split())


def test_neighbours_stand_around_their_result(screen: Console) -> None:
    around = [
        memory(3, "And after.", created_by="Ben"),
        memory(1, "What came before."),
        memory(9, "The whole talk."),
    ]
    hit = memory(2, "The hit.", neighbours=around, parent_id=around[2]["id"])
    show_found(answer(hit), "hit", full_ids=False)
    lines = [line.strip() for line in shown(screen).splitlines()]
    assert lines[:4] == [
        "part of: The whole talk.",
        "What came before.",
        "1 ■■■■■  1.00  The hit.",
        "Ben: And after.",
    ]


def test_who_said_it_and_when_may_stand_in_the_metadata(screen: Console) -> None:
    said = {"speaker": "Caroline", "date": "7 May 2023"}
    dated = memory(2, "Later.", valid_from="2023-05-08T13:56:00Z")
    show_found(answer(memory(1, "Hello.", metadata=said), dated), "x", full_ids=False)
    text = shown(screen)
    assert "Caroline · 7 May 2023 · " in text
    assert "cli · 2023-05-08 13:56 (" in text


def test_those_that_say_the_same_are_counted(screen: Console) -> None:
    show_found(
        answer(memory(1, "a", also=["x", "y"]), memory(2, "b", also=["z"])), "x", full_ids=False
    )
    text = shown(screen)
    assert "(and 2 that say the same)" in text
    assert "(and 1 that says the same)" in text


def test_an_explanation_shows_the_parts_the_largest_first(screen: Console) -> None:
    parts = {"recency": 0.2, "lexical": 1.0, "question": -0.6, "strength": 0.0, "note": "odd"}
    show_found(answer(memory(1, "a", explanation=parts)), "x", full_ids=False)
    lines = [line.split() for line in shown(screen).splitlines()[2:]]
    assert lines[0][:3] == ["lexical", "■■■■■", "+1.000"]
    assert lines[1][:3] == ["question", "■■■··", "-0.600"]
    assert lines[2][:3] == ["recency", "■····", "+0.200"]
    assert lines[3] == ["note", "odd"]
    assert "words in common" in " ".join(lines[0])


def test_stored_text_cannot_command_the_terminal(screen: Console) -> None:
    sly = "[bold]plain[/bold] \x1b[31mred\x07"
    show_found(
        answer(memory(1, sly, created_by=sly, tags=[sly], explanation={sly: sly})),
        "plain",
        full_ids=False,
    )
    text = shown(screen)
    assert "[bold]plain[/bold]" in text
    assert "\x1b[31m" not in text and "\x07" not in text


def test_what_could_not_be_used_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show_degraded(answer(degraded="No vectors now; found by words alone."))
    show_degraded(answer())
    assert capsys.readouterr().err == "No vectors now; found by words alone.\n"
