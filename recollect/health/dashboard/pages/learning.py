"""What was learned from how tasks went: patterns, executions, decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

PATTERNS_SHOWN = 30
EXECUTIONS_SHOWN = 12
DECISIONS_SHOWN = 20
PATTERN_TONES = {"success": "good", "failure": "bad", "mixed": "warn"}


async def learning(visit: Visit, request: Request) -> None:
    with frame(visit, "Learning", "What agents learned from how their tasks went."):
        of_patterns = visit.source.ask(ops.SearchPatterns(limit=PATTERNS_SHOWN))
        kept = ops.ListMemories(filters={"collection": "executions"}, limit=EXECUTIONS_SHOWN)
        of_executions = visit.source.ask(kept)
        of_decisions = visit.source.ask(ops.ListDecisions(limit=DECISIONS_SHOWN))
        patterns, executions, decisions = await asyncio.gather(
            of_patterns, of_executions, of_decisions
        )
        with parts.box("grid"):
            with parts.box("stack wide c7"):
                _patterns(patterns)
                _executions(executions)
            with parts.box("stack wide c5"):
                _decisions(decisions)


def _patterns(found: Any) -> None:
    with parts.card("Patterns", "flush", "the most certain first"):
        if isinstance(found, RecollectError):
            parts.trouble(found)
        elif not found["patterns"]:
            parts.empty(
                "school",
                "Nothing learned yet",
                "Agents tell how their tasks went with store_execution; what sets the good from "
                "the bad shows here.",
                "recollect patterns search --help",
            )
        else:
            with parts.box("lines"):
                for pattern in found["patterns"]:
                    _pattern(pattern)


def _pattern(pattern: Mapping[str, Any]) -> None:
    with parts.box("line"):
        with parts.box("grow stack"):
            parts.link(
                wording.shortened(pattern["summary"], 300),
                parts.memory_path(pattern["id"]),
                "title any",
            )
            with parts.box("meta"):
                kind = pattern["pattern_type"]
                parts.chip(kind, PATTERN_TONES.get(kind, ""))
                parts.chip(pattern["task_type"])
                parts.text(f"used {wording.plural(pattern['usage_count'], 'time')}", "num", "span")
                parts.text(pattern["namespace"], "clip", "span")
            for advice in pattern["recommended_context"][:3]:
                with parts.box("across top small soft"):
                    parts.text("→", "muted", "span")
                    parts.text(wording.shortened(advice, 200), "any", "span")
        with parts.box("stack").style("width: 112px; flex: none"):
            confidence = pattern["confidence"]
            colour = theme.STATES["healthy" if confidence >= 0.7 else "degraded"]
            evidence = (
                f"{wording.count(pattern['successes'])} for, "
                f"{wording.count(pattern['failures'])} against"
            )
            parts.text(f"{confidence:.0%} sure", "num right strong", hint=evidence)
            parts.bar(confidence, colour)
            parts.text(evidence, "muted small num right")


def _decisions(found: Any) -> None:
    with parts.card("Decisions", "flush", "the newest first"):
        if isinstance(found, RecollectError):
            parts.trouble(found)
        elif not found["decisions"]:
            parts.empty(
                "alt_route",
                "No decisions yet",
                "Agents keep them with log_decision, and what came of them with record_outcome.",
            )
        else:
            with parts.box("lines"):
                for decision in found["decisions"]:
                    _decision(decision)


def _decision(decision: Mapping[str, Any]) -> None:
    with parts.box("line", "a") as line:
        line.props["href"] = parts.memory_path(decision["id"])
        with parts.box("grow"):
            parts.text(wording.shortened(decision["context"], 160), "text")
            with parts.box("across top small soft"):
                parts.text("→", "muted", "span")
                parts.text(wording.shortened(decision["choice"], 120), "any strong", "span")
            with parts.box("meta"):
                outcome = {True: ("went well", "good"), False: ("went wrong", "bad")}.get(
                    decision["success"],
                    ("outcome unclear", "warn") if decision["outcome"] else ("open", ""),
                )
                parts.chip(*outcome, hint=decision["outcome"])
                parts.text(f"{decision['confidence']:.0%} sure", "num", "span")
                parts.when(decision["decided_at"])


def _executions(found: Any) -> None:
    with parts.card("Executions", "flush", "how tasks went"):
        if isinstance(found, RecollectError):
            parts.trouble(found)
        elif not found["memories"]:
            parts.empty(
                "play_circle", "No executions yet", "store_execution keeps how a task went."
            )
        else:
            with parts.box("lines"):
                for memory in found["memories"]:
                    parts.memory_line(memory, wording.age(memory["created_at"]))
