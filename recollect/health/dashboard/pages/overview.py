"""How the system is: its parts, what it does now, what it holds, what went wrong."""

from __future__ import annotations

from nicegui import ui
from starlette.requests import Request

from recollect.health.dashboard import parts, theme, wording
from recollect.health.dashboard.drawing import charts, live_charts
from recollect.health.dashboard.drawing.live import EVERY_S
from recollect.health.dashboard.frame import frame
from recollect.health.dashboard.visit import Visit
from recollect.protocol import operations as ops
from recollect.protocol.errors import RecollectError

ERRORS_SHOWN = 8
CHANGES_SHOWN = 5
ERRORS_EVERY_S = 5.0


async def overview(visit: Visit, request: Request) -> None:
    with frame(visit, "Overview", "How the system is, now."):
        live_charts.numbers(visit.live)
        with parts.box("grid even"):
            with parts.card("Throughput", "c6", "requests a second"):
                live_charts.following(visit.live, live_charts.throughput)
            with parts.card("Latency", "c6", "milliseconds, of all operations"):
                live_charts.following(visit.live, live_charts.latency)
        with parts.box("grid"):
            with parts.card("Components", "c8 flush"):
                _components(visit)
            with parts.box("stack wide c4"):
                await _tiers(visit)
                _changes(visit)
        with parts.card("Recent errors", "flush"):
            await _errors(visit)


def _components(visit: Visit) -> None:
    """Each part of the system: its state, since when, and why."""

    @ui.refreshable
    def listed() -> None:
        status = visit.status()
        if not status["components"]:
            parts.empty("hourglass_empty", "Nothing was probed yet", "The first look is under way.")
            return
        with parts.box("lines"):
            for component in status["components"]:
                with parts.box("line"):
                    with parts.box("grow"):
                        parts.text(wording.spoken(component["name"]), "strong")
                        for reason in component["reasons"]:
                            parts.text(reason, "muted small any")
                    parts.text(
                        f"for {wording.elapsed(component['since'])}",
                        "muted small num",
                        hint=wording.at(component["since"]),
                    )
                    parts.state_chip(component["state"])

    listed()
    ui.timer(EVERY_S, listed.refresh, immediate=False)


def _changes(visit: Visit) -> None:
    """What became better or worse, the latest first."""
    changes = sorted(visit.status()["history"], key=lambda change: change["at"], reverse=True)
    if not changes:
        return
    with parts.card("Changes of state", "flush"), parts.box("lines"):
        for change in changes[:CHANGES_SHOWN]:
            with parts.box("line"):
                with parts.box("grow"):
                    parts.text(wording.spoken(change["component"]), "strong")
                    reasons = "; ".join(change["reasons"])
                    parts.when(change["at"], "muted small num")
                    if reasons:
                        parts.text(wording.shortened(reasons, 120), "muted small any")
                parts.state_chip(change["after"])


async def _tiers(visit: Visit) -> None:
    stats = await visit.source.ask(ops.Stats())
    with parts.card("Memories by tier"):
        if isinstance(stats, RecollectError):
            parts.trouble(stats)
            return
        memories = stats["memories"]
        by_tier = {tier: memories["by_tier"].get(tier, 0) for tier in theme.TIERS}
        if not memories["total"]:
            parts.empty(
                "lightbulb_outline",
                "No memories yet",
                "Add the first one, and it will be counted here.",
                'recollect add "The build is green since Tuesday."',
            )
            return
        with parts.box("across"):
            ui.echart(charts.ring(by_tier, theme.TIERS)).classes("chart ring")
            with parts.box("stack grow"):
                for tier, count in by_tier.items():
                    with parts.box("across"):
                        parts.box("swatch", "span").style(f"background: {theme.TIERS[tier]}")
                        parts.text(wording.spoken(tier), "grow", "span")
                        parts.number(count, "num strong")
                for name in ("archived", "deleted"):
                    with parts.box("across muted small"):
                        parts.text(wording.spoken(name), "grow", "span")
                        parts.number(memories[name])


async def _errors(visit: Visit) -> None:
    @ui.refreshable
    async def listed() -> None:
        found = await visit.source.ask(ops.RecentErrors(limit=ERRORS_SHOWN))
        if isinstance(found, RecollectError):
            parts.trouble(found)
        elif not found["errors"]:
            parts.empty("task_alt", "No errors", "Whatever goes wrong in any process shows here.")
        else:
            with parts.box("lines"):
                for error in found["errors"]:
                    with parts.box("line"):
                        with parts.box("grow"):
                            parts.text(wording.shortened(error["message"], 300), "any")
                            with parts.box("meta"):
                                parts.chip(error["code"], "bad")
                                parts.text(error["source"], "clip", "span")
                        parts.text(
                            wording.plural(error["count"], "time"),
                            "num small muted",
                            hint=f"first {wording.at(error['first_at'])}",
                        )
                        parts.when(error["last_at"], "num small muted")

    await listed()
    ui.timer(ERRORS_EVERY_S, listed.refresh, immediate=False)
