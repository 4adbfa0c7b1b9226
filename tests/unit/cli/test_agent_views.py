"""Context, goals, tasks, decisions, patterns and events, as they stand on the screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from recollect.cli import memory_views
from recollect.cli.agents import (
    blocks,
    context_views,
    decision_views,
    operational_views,
    pattern_views,
    working_views,
)
from recollect.cli.output import PLAIN

THEN = (datetime.now(UTC) - timedelta(hours=3)).isoformat()
SLY = "[bold]plain[/bold] \x1b[31mred\x07"
ID = "00000000-0000-7000-8000-000012345678"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A screen of 80 columns that keeps what it shows."""
    console = Console(
        width=80,
        force_terminal=True,
        color_system=None,
        record=True,
        **PLAIN,  # type: ignore[arg-type]
    )
    views = (blocks, context_views, operational_views, working_views)
    for module in (*views, memory_views):
        monkeypatch.setattr(module, "out", console)
    return console


def lines(screen: Console) -> list[str]:
    return [" ".join(line.split()) for line in screen.export_text().splitlines()]


def chunk(**fields: Any) -> Any:
    return {
        "n": 3,
        "memory_id": ID,
        "version": 2,
        "tier": "working",
        "collection": "tasks",
        "namespace": "project:shop",
        "source": "runbook",
        "author": "ann",
        "at": THEN,
        "trust": 0.9,
        "score": 1.0,
        "tokens": 1200,
        "truncated": True,
        "text": "Deploy the shop.",
        **fields,
    }


def goal(**fields: Any) -> Any:
    return {
        "id": ID,
        "namespace": "project:shop",
        "version": 1,
        "description": "Open the shop",
        "goal_status": "active",
        "priority": 0.8,
        "progress": 0.25,
        "due_at": None,
        "parent_goal_id": None,
        "metadata": {},
        "tags": ["spring"],
        "created_by": "ann",
        "created_at": THEN,
        "updated_at": THEN,
        "ended_at": None,
        **fields,
    }


def task(**fields: Any) -> Any:
    return {
        "task_id": "D-1",
        "memory_id": ID,
        "namespace": "project:shop",
        "version": 3,
        "description": "Deploy the shop",
        "goal_id": ID,
        "task_type": "deploy",
        "task_status": "in_progress",
        "phase": "testing",
        "phase_reason": "",
        "next_phases": ["deployment", "blocked"],
        "assigned_to": None,
        "summary": "",
        "steps": 1,
        "metadata": {},
        "tags": [],
        "created_by": "ann",
        "created_at": THEN,
        "updated_at": THEN,
        "started_at": THEN,
        "ended_at": None,
        **fields,
    }


def step(**fields: Any) -> Any:
    return {
        "id": ID,
        "task_id": "D-1",
        "iteration": 7,
        "tool_name": "shell",
        "parameters": {"cmd": "ls"},
        "output": "a b",
        "truncated": False,
        "success": False,
        "duration_ms": 1234.5,
        "at": THEN,
        "author": "ann",
        **fields,
    }


def decision(**fields: Any) -> Any:
    return {
        "id": ID,
        "namespace": "project:shop",
        "version": 1,
        "context": "Which database?",
        "options": ["a file", "SQLite"],
        "choice": "SQLite",
        "reasoning": "It is there.",
        "confidence": 0.8,
        "goal_id": None,
        "task_id": "D-1",
        "receipt_id": None,
        "decided_by": "ann",
        "decided_at": THEN,
        "outcome": "No order was lost.",
        "success": True,
        "outcome_at": THEN,
        "outcome_by": "ann",
        "metadata": {},
        "tags": [],
        **fields,
    }


def pattern(**fields: Any) -> Any:
    return {
        "id": ID,
        "namespace": "app:default",
        "version": 1,
        "pattern_type": "mixed",
        "task_type": "deploy",
        "trigger": "Deploy the shop",
        "summary": "Take a backup.",
        "success_indicators": [],
        "failure_indicators": [],
        "recommended_context": ["Do: take a backup."],
        "confidence": 0.75,
        "successes": 5.0,
        "failures": 1.0,
        "usage_count": 1,
        "executions": [],
        "created_at": THEN,
        "updated_at": THEN,
        "similarity": 0.9,
        **fields,
    }


def event(**fields: Any) -> Any:
    return {
        "id": ID,
        "at": THEN,
        "namespace": "app:default",
        "category": "disk.full",
        "data": {"free": 0},
        "critical": True,
        "author": "ann",
        "task_id": None,
        "session_id": None,
        **fields,
    }


def test_a_piece_says_what_it_is_where_it_comes_from_and_what_it_costs(screen: Console) -> None:
    context_views.show_pieces([chunk()], full_ids=False)
    _, first, *rest = lines(screen)
    assert first == "3 12345678 working Deploy the shop. 0.9 1,200"
    assert rest == ["tasks · version 2 · runbook · ann", "3 hours ago · project:shop · cut"]


def test_a_context_is_written_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"<data-x>\n{'word ' * 100}\t[bold]\n</data-x>\n"
    context_views.write_context(text)
    context_views.write_context("")
    assert capsys.readouterr().out == text


def test_a_goal_shows_how_urgent_and_how_far_it_is(screen: Console) -> None:
    working_views.show_goals([goal()], full_ids=False)
    assert lines(screen)[1:] == ["12345678 Open the shop ■■■■· 0.8 25% -", "project:shop #spring"]


def test_a_task_shows_where_it_may_go_and_its_steps(screen: Console) -> None:
    working_views.show_task(task())
    working_views.show_steps([step()])
    text = "\n".join(lines(screen))
    assert "status in progress" in text
    assert "phase testing (may go on to deployment, blocked)" in text
    assert '7 ✗ shell {"cmd":"ls"} 1,234 ms 3 hours ago\na b' in text


def test_a_decision_says_what_why_and_what_came_of_it(screen: Console) -> None:
    decision_views.show_decisions(
        [decision(similarity=0.5), decision(success=False), decision(success=None)], full_ids=False
    )
    told = lines(screen)
    assert told[:5] == [
        "Which database?",
        "→ SQLite rather than a file",
        "because It is there.",
        "✓ No order was lost.",
        "likeness 0.50 · 80% sure · ann · 3 hours ago · project:shop · task D-1",
    ]
    assert "✗ No order was lost." in told and "· No order was lost." in told


def test_a_pattern_says_what_to_do_and_what_that_rests_on(screen: Console) -> None:
    pattern_views.show_patterns([pattern()], full_ids=False)
    assert lines(screen) == [
        "Deploy the shop",
        "■■■■· 0.75 5 for, 1 against",
        "Do: take a backup.",
        "likeness 0.90 · deploy · learned of success and failure · used 1 time",
        "3 hours ago · 12345678",
    ]


def test_an_event_says_whether_it_is_critical(screen: Console) -> None:
    operational_views.show_events([event(), event(critical=False, data=None)])
    assert lines(screen)[1:] == [
        '3 hours ago disk.full critical {"free":0} ann',
        "3 hours ago disk.full ann",
    ]


def test_stored_text_cannot_command_the_terminal(
    screen: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    context_views.write_context(SLY)
    written = capsys.readouterr().out
    context_views.show_pieces([chunk(text=SLY, source=SLY, author=SLY)], full_ids=False)
    working_views.show_goals([goal(description=SLY, tags=[SLY])], full_ids=False)
    own = task(task_id=SLY, description=SLY, summary=SLY, phase=SLY, assigned_to=SLY)
    working_views.show_tasks([own])
    working_views.show_task(own)
    working_views.show_steps([step(tool_name=SLY, output=SLY, parameters={SLY: SLY})])
    decision_views.show_decisions(
        [decision(context=SLY, options=[SLY], choice=SLY, reasoning=SLY, outcome=SLY, task_id=SLY)],
        full_ids=False,
    )
    pattern_views.show_patterns([pattern(trigger=SLY, recommended_context=[SLY])], full_ids=False)
    operational_views.show_events([event(data=SLY, author=SLY, category=SLY)])
    counts = {"kept": 1, "kept_max": 10, "critical": 1, "by_category": {SLY: 1}}
    metric = {"namespace": SLY, "key": SLY, "value": SLY, "at": THEN, "author": SLY}
    active = {"namespace": SLY, "task_id": SLY, "state": {SLY: SLY}, "since": THEN, "at": THEN}
    snapshot: Any = {
        "kept_in": "process",
        "events": counts,
        "latest_events": [],
        "metrics": [metric],
        "active_tasks": [{**active, "author": SLY}],
        "active_goals": [],
    }
    operational_views.show_snapshot(snapshot)
    text = written + screen.export_text()
    assert text.count("[bold]") > 20
    assert "\x1b[31m" not in text and "\x07" not in text
