"""Puts the pages into the web application of the health manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui
from starlette.applications import Starlette
from starlette.requests import Request

from recollect.config import Settings
from recollect.health.dashboard import theme
from recollect.health.dashboard.drawing.live import Live
from recollect.health.dashboard.pages import PAGES
from recollect.health.dashboard.source import Line, Source
from recollect.health.dashboard.visit import Visit, down_of, why_down
from recollect.health.manager import HealthManager
from recollect.health.signing_in import Doorkeeper

RESPONSE_WITHIN_S = 15.0
"""Longer than a page asks the orchestrator for anything."""


def mount(app: Starlette, manager: HealthManager, clients: Line, settings: Settings) -> None:
    """Serve the dashboard beside what the application serves already; once a process.

    Who may look the application itself has seen to; who may act its doorkeeper tells.
    """

    def why() -> str | None:
        report = down_of(manager)
        return None if report is None else why_down(report)

    source = Source(clients, why)
    live = Live(manager.samples, settings.health.probe_interval_s)
    doorkeeper: Doorkeeper = app.state.doorkeeper

    def visit_of(request: Request) -> Visit:
        chosen = request.cookies.get(theme.THEME_COOKIE, "auto")
        return Visit(
            source=source,
            live=live,
            status=manager.status,
            down=lambda: down_of(manager),
            signed_in=lambda: doorkeeper.may_change(request.headers),
            path=request.url.path,
            theme=chosen if chosen in ("light", "dark") else "auto",
            fade_threshold=settings.decay.fade_threshold,
        )

    for path, build in PAGES.items():
        _offer(path, build, visit_of)
    nicegui_app.add_static_files(theme.ASSETS_PATH, theme.ASSETS)
    ui.run_with(
        # What it takes of FastAPI is what Starlette has.
        cast(FastAPI, app),
        title="Recollect",
        favicon=theme.ASSETS / "logo.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
    )


def _offer(
    path: str,
    build: Callable[[Visit, Request], Awaitable[None]],
    visit_of: Callable[[Request], Visit],
) -> None:
    @ui.page(path, response_timeout=RESPONSE_WITHIN_S)
    async def page(request: Request) -> None:
        await build(visit_of(request), request)
