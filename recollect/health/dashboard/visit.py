"""What a page knows of who looks at it and of where its data comes from."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.health.dashboard.drawing.live import Live
from recollect.health.dashboard.source import Source
from recollect.health.manager import ORCHESTRATOR, ComponentReport, HealthManager, StatusReport


class Visit(msgspec.Struct, frozen=True):
    """One look at one page. Nothing of it outlives the page."""

    source: Source
    live: Live
    status: Callable[[], StatusReport]
    """How the health manager sees the system, now."""
    down: Callable[[], ComponentReport | None]
    """The report of the orchestrator, if that is down."""
    signed_in: Callable[[], bool]
    """Asked again at every action: a session may have ended since the page was opened."""
    path: str
    theme: str
    """light, dark, or auto: as the system is."""
    fade_threshold: float


def down_of(manager: HealthManager) -> ComponentReport | None:
    """The report of the orchestrator, if that is known to be down."""
    for component in manager.status()["components"]:
        if component["name"] == ORCHESTRATOR and component["state"] == "down":
            return component
    return None


def why_down(report: ComponentReport) -> str:
    """The reasons that it gives."""
    return "; ".join(report["reasons"]) or "It does not answer."
