"""Memories: searched as an agent would, with why each result scored as it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, wording
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.searching import WAYS, Question
from recollect.health.dashboard.visit import Visit
from recollect.protocol.errors import RecollectError

AMOUNT_MIN = 0.0005
"""Less than this says nothing about a place among the results."""
REASONS = {
    "lexical": "Words",
    "semantic": "Meaning",
    "recency": "How recent",
    "importance": "Importance",
    "strength": "Strength",
    "author": "Who said it",
    "mention": "Whom it is about",
    "session": "Its session",
    "turns": "Turns beside it",
    "reply": "Answers a question",
    "specifics": "Says something specific",
    "question": "Only asks",
    "when": "Tells when",
    "date": "When it happened",
}


async def memories(visit: Visit, request: Request) -> None:
    question = Question.of(request.query_params)
    with frame(visit, "Memories", "Search as an agent would, and see why a result is where it is."):
        _form(question)
        asked = question.operation()
        answer: Any = asked if isinstance(asked, RecollectError) else await visit.source.ask(asked)
        if isinstance(answer, RecollectError):
            with parts.card():
                parts.trouble(answer)
        elif question.query:
            _found(question, answer)
        else:
            _newest(question, answer)


def _form(question: Question) -> None:
    fields: dict[str, Any] = {}

    def submit() -> None:
        given = {name: str(field.value or "").strip() for name, field in fields.items()}
        ui.navigate.to(Question(**given).path())

    with parts.card():
        with parts.box("form"):
            fields["query"] = (
                ui.input("Search", value=question.query, placeholder="What broke the build?")
                .props("outlined dense clearable autofocus")
                .style("grid-column: span 9")
            )
            fields["way"] = (
                ui.select(WAYS, label="How", value=question.way)
                .props("outlined dense options-dense")
                .style("grid-column: span 3")
            )
            fields["namespace"] = (
                ui.input("Namespace", value=question.namespace, placeholder="project:apollo")
                .props("outlined dense clearable")
                .classes("half")
                .style("grid-column: span 3")
            )
            fields["memory_type"] = (
                ui.input("Type", value=question.memory_type, placeholder="episodic")
                .props("outlined dense clearable")
                .classes("half")
                .style("grid-column: span 3")
            )
            fields["filters"] = (
                ui.input(
                    "Filters", value=question.filters, placeholder='{"importance": {"gte": 0.5}}'
                )
                .props("outlined dense clearable")
                .style("grid-column: span 4")
            )
            parts.button("Search", submit, "main").style("grid-column: span 2; height: 40px")
        for field in fields.values():
            field.on("keydown.enter", submit)


def _found(question: Question, answer: Mapping[str, Any]) -> None:
    results = answer["results"]
    if answer.get("degraded"):
        with parts.box("banner warn"):
            ui.icon("warning")
            parts.text(answer["degraded"])
    if not results:
        with parts.card():
            parts.empty(
                "search_off",
                "Nothing found",
                "Try other words, another way to search, or a wider namespace.",
            )
        return
    title = f"{wording.plural(len(results), 'result')}, the best first"
    with parts.card(title, "flush", "looking counts as a read, as it does for agents"):
        best = max(abs(result["score"]) for result in results) or 1.0
        with parts.box("lines"):
            for result in results:
                _result(result, best)
    _more(question, answer["cursor"])


def _result(result: Mapping[str, Any], best: float) -> None:
    with parts.box("line"):
        with parts.box("grow"):
            words = wording.shortened(result["content"], 280)
            parts.link(words, parts.memory_path(result["id"]), "text title")
            with parts.box("meta"):
                parts.tier_chip(result["memory_tier"])
                parts.chip(result["memory_type"])
                parts.text(result["namespace"], "clip", "span")
                parts.when(result["created_at"])
                if result.get("also"):
                    parts.chip(f"and {len(result['also'])} alike")
            explanation = result.get("explanation") or {}
            if explanation:
                with ui.expansion("Why this score").props("dense"):
                    _why(explanation)
        with parts.box("stack").style("width: 72px; flex: none"):
            score = f"{result['score']:.3f}"
            parts.text(score, "num right strong", hint=f"score {result['score']!r}")
            parts.bar(abs(result["score"]) / best)


def _why(explanation: Mapping[str, Any]) -> None:
    """What each reason gave or took, the largest first."""
    amounts = {
        name: float(amount)
        for name, amount in explanation.items()
        if isinstance(amount, int | float) and abs(amount) >= AMOUNT_MIN
    }
    largest = max((abs(amount) for amount in amounts.values()), default=0.0) or 1.0
    with parts.box("why"):
        for name, amount in sorted(amounts.items(), key=lambda pair: -abs(pair[1])):
            parts.text(REASONS.get(name, wording.spoken(name)), "muted", "span")
            colour = "var(--accent)" if amount >= 0 else "var(--bad)"
            parts.bar(abs(amount) / largest, colour)
            parts.text(f"{amount:+.3f}", "num right", "span")


def _newest(question: Question, answer: Mapping[str, Any]) -> None:
    found = answer["memories"]
    if not found:
        narrowed = question.namespace or question.memory_type or question.filters
        with parts.card():
            if narrowed:
                parts.empty("filter_alt_off", "Nothing fits", "Widen the namespace or the filters.")
            else:
                parts.empty(
                    "lightbulb_outline",
                    "No memories yet",
                    "Agents write them with add_memory; you can do it from here too:",
                    'recollect add "The build is green since Tuesday."',
                )
        return
    with parts.card("The newest", "flush"), parts.box("lines"):
        for memory in found:
            made = f"{wording.age(memory['created_at'])}"
            by = [f"by {memory['created_by']}"] if memory["created_by"] else []
            parts.memory_line(memory, made, *by)
    _more(question, answer["cursor"])


def _more(question: Question, cursor: str | None) -> None:
    if cursor or question.cursor:
        with parts.box("across"):
            if question.cursor:
                first = msgspec.structs.replace(question, cursor="")
                parts.link("Back to the first", first.path())
            if cursor:
                parts.link("Show more", msgspec.structs.replace(question, cursor=cursor).path())
