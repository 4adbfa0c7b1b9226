"""The store as a whole: how it grows, what is used, what will fade, what says the same twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.conflicts import conflicts
from recollect.health.dashboard.drawing import charts
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

SPANS = {7: "7 days", 30: "30 days", 90: "90 days"}
COUNTED = {"Types": "by_type", "Collections": "by_collection", "Agents": "by_agent"}
NAMES_SHOWN = 6
LISTED = 8


async def analytics(visit: Visit, request: Request) -> None:
    asked = request.query_params.get("days", "")
    days = int(asked) if asked.isdecimal() and int(asked) in SPANS else 30
    with frame(visit, "Analytics", "How the store grows, what is used, what fades.") as actions:
        with actions, parts.box("segments", "nav"):
            for span, words in SPANS.items():
                parts.link(words, f"/analytics?days={span}", "here" if span == days else "")
        told = await visit.source.ask(ops.Analytics(days=days), 10.0)
        if isinstance(told, RecollectError):
            with parts.card():
                parts.trouble(told)
            return
        if not any(day["created"] for day in told["growth"]) and not told["by_tier"]:
            with parts.card():
                parts.empty(
                    "insights",
                    "Nothing to tell yet",
                    "As soon as there are memories, their growth and use are shown here.",
                    'recollect add "The build is green since Tuesday."',
                )
            return
        _note(told)
        _growth(told)
        _names(told)
        _fading(told)
        with parts.box("grid"):
            _used("Most used", told["most_used"], "Nothing was read yet.")
            _used("Least used", told["least_used"], "")
        conflicts(visit)


def _note(told: Mapping[str, Any]) -> None:
    if told["sampled"]:
        with parts.box("banner warn"):
            ui.icon("info")
            parts.text(
                f"The store is large: growth, use and counts are of the newest "
                f"{told['examined']:,} memories, since {wording.at(told['examined_since'])}."
            )


def _growth(told: Mapping[str, Any]) -> None:
    days = [day["day"][5:] for day in told["growth"]]
    made = sum(day["created"] for day in told["growth"])
    series = [
        charts.bars(wording.spoken(tier), [day[tier] for day in told["growth"]], colour, stack="t")
        for tier, colour in theme.TIERS.items()
    ]
    with parts.card("Made each day", note=f"{wording.count(made)} in all"):
        options = charts.plain(series, charts.category_axis(days), charts.value_axis(minInterval=1))
        ui.echart(options).classes("chart")


def _names(told: Mapping[str, Any]) -> None:
    with parts.box("grid even"):
        for title, name in COUNTED.items():
            with parts.card(title, "c4"):
                counts: dict[str, int] = told[name]
                largest = max(counts.values(), default=0) or 1
                if not counts:
                    parts.empty("label_off", "None", "set_agent_id says who writes.")
                for word, count in list(counts.items())[:NAMES_SHOWN]:
                    with parts.box("stack").style("gap: 4px"):
                        with parts.box("across"):
                            parts.text(word, "grow clip", "span", word)
                            parts.number(count, "num soft")
                        parts.bar(count / largest)
                if len(counts) > NAMES_SHOWN:
                    parts.text(f"and {len(counts) - NAMES_SHOWN} more", "muted small")


def _fading(told: Mapping[str, Any]) -> None:
    fading = told["fading"]
    more = "" if fading["complete"] else " or more"
    if not fading["count"] and not fading["faded"]:
        with parts.card("What will fade this week"):
            parts.empty("spa", "Nothing fades this week", "What is used stays; the rest goes.")
        return
    with parts.box("grid even"):
        with parts.card("What will fade this week", "c5"):
            with parts.box("across wrap"):
                parts.text(f"{wording.count(fading['count'])}{more}", "strong", "span").style(
                    "font-size: 22px"
                )
                parts.text("within seven days", "muted", "span")
                if fading["faded"]:
                    parts.chip(
                        f"{wording.count(fading['faded'])} faded already",
                        "warn",
                        hint="They wait for the decay job.",
                    )
            days = fading["by_day"]
            options = charts.plain(
                [charts.bars("Fading", [day["count"] for day in days], theme.STATES["degraded"])],
                charts.category_axis([day["day"][5:] for day in days]),
                charts.value_axis(minInterval=1),
                grid={"left": 8, "right": 12, "top": 12, "bottom": 4, "containLabel": True},
            )
            ui.echart(options).classes("chart low")
        with parts.card("The first to fade", "c7 flush"):
            if not fading["memories"]:
                parts.empty(
                    "spa", "Nothing fades this week", "Memories that are used stay; others go."
                )
            with parts.box("lines"):
                for memory in fading["memories"][:6]:
                    parts.memory_line(memory, f"fades {wording.age(memory['fades_at'])}")


def _used(title: str, memories: Sequence[Mapping[str, Any]], otherwise: str) -> None:
    with parts.card(title, "c6 flush"):
        if not memories:
            parts.empty("touch_app", "None yet", otherwise)
        with parts.box("lines"):
            for memory in memories[:LISTED]:
                parts.memory_line(
                    memory,
                    f"used {wording.plural(memory['access_count'], 'time')}",
                    wording.age(memory["last_accessed_at"]),
                )
